/** The middle value; of an even number, the upper of the two. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted[sorted.length >> 1];
  if (middle === undefined) throw new Error('there are no values to take the median of');
  return middle;
}

/** The median of the ratios of each round: noise of the machine affects both sides of a round. */
export function medianRatio(values: readonly number[], controls: readonly number[]): number {
  return median(values.map((value, i) => value / (controls[i] ?? NaN)));
}

export function perSecond(rates: readonly number[]): string {
  return `${Math.round(median(rates)).toLocaleString('en')}/s`;
}

export function milliseconds(micros: readonly number[]): string {
  return `${(median(micros) / 1000).toFixed(2)} ms`;
}
