/** How many random cases a property test tries: as many as given here, or with `npm run test:property` as many as that sets. */
export function runsOf(usual: number): number {
  return Math.max(usual, Number(process.env['PROPERTY_RUNS'] ?? 0));
}
