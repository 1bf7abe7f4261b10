/**
 * Decimal arithmetic for the tests, written without regard to speed and without any code of the service: a value is a
 * whole number of 10^-scale.
 */
const scale = 360n;

/** The exact value of a decimal as text, such as `0.0015` or `1.5e-7`. */
export function exact(text: string): bigint {
  const match = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(text);
  if (!match) throw new Error(`not a decimal: ${text}`);
  const [, whole = '', fraction = '', exponent = '0'] = match;
  const power = scale - BigInt(fraction.length) + BigInt(exponent);
  return BigInt(whole + fraction) * 10n ** power;
}

/** Rounds half up at this many places, and stays at the same scale. */
export function roundHalfUp(value: bigint, places: bigint): bigint {
  const unit = 10n ** (scale - places);
  return ((value + unit / 2n) / unit) * unit;
}

/** With exactly six decimals, rounded half up. */
export function sixDecimals(value: bigint): string {
  const micros = roundHalfUp(value, 6n) / 10n ** (scale - 6n);
  const text = String(micros).padStart(7, '0');
  return `${text.slice(0, -6)}.${text.slice(-6)}`;
}
