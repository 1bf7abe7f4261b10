/** `98.63%`, `98.50%`, `100%`: 0% and 100% have no decimals, and only the exact whole is shown as 100%. */
export function percent(value: number): string {
  if (value === 0 || value === 100) return `${value}%`;
  return `${Math.min(99.99, value).toFixed(2)}%`;
}

/** For bars: `12%`, and `<1%` for a share that is small but not 0. */
export function shortPercent(share: number): string {
  const value = share * 100;
  if (value > 0 && value < 1) return '<1%';
  // Only the exact whole is 100%.
  return `${share < 1 ? Math.min(99, Math.round(value)) : 100}%`;
}
