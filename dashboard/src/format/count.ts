const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const units = [
  { size: 1e3, name: 'K' },
  { size: 1e6, name: 'M' },
  { size: 1e9, name: 'B' },
  { size: 1e12, name: 'T' },
] as const;

/** Below this a number is read faster in full than shortened. */
const inFullBelow = 100_000;

/** `1,234,567`. */
export function exactCount(value: number): string {
  return whole.format(value);
}

/** `98,765`, `123 K`, `1.23 M`. */
export function shortCount(value: number): string {
  return value < inFullBelow ? exactCount(value) : scaled(value);
}

/** Three digits and a unit; 999,950 is `1 M`, not `1000 K`. */
export function scaled(value: number): string {
  for (const { size, name } of units) {
    const shown = Number((value / size).toPrecision(3));
    if (shown < 1000) return `${shown} ${name}`;
  }
  return `${whole.format(value / 1e12)} T`;
}

/** `1 trace`, `2,000 traces`. */
export function counted(value: number, noun: string): string {
  return `${exactCount(value)} ${noun}${value === 1 ? '' : 's'}`;
}
