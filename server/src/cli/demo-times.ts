/** How busy each hour of a UTC day is. */
const hourWeights = [
  2, 1, 1, 1, 1, 2, 4, 7, 10, 12, 12, 11, 9, 11, 12, 12, 11, 9, 7, 6, 5, 4, 3, 3,
];
const hourUs = 3_600_000_000;

/** Ascending times between two moments, with more of them by day than by night. */
export function* demoTimes(count: number, fromUs: number, toUs: number): Generator<number> {
  const hours = hoursBetween(fromUs, Math.max(fromUs + 1, toUs));
  const total = hours.reduce((sum, { weight }) => sum + weight, 0);
  let passed = 0;
  let made = 0;
  for (const { startUs, endUs, weight } of hours) {
    passed += weight;
    const due = Math.round((passed / total) * count) - made;
    for (let i = 0; i < due; i++) yield Math.floor(startUs + ((i + 0.5) / due) * (endUs - startUs));
    made += due;
  }
}

/** The first and the last may be parts of an hour. */
function hoursBetween(fromUs: number, toUs: number) {
  const firstHour = Math.floor(fromUs / hourUs);
  return Array.from({ length: Math.ceil(toUs / hourUs) - firstHour }, (_, i) => {
    const hour = firstHour + i;
    const startUs = Math.max(fromUs, hour * hourUs);
    const endUs = Math.min(toUs, (hour + 1) * hourUs);
    return { startUs, endUs, weight: (hourWeights[hour % 24] ?? 1) * (endUs - startUs) };
  });
}
