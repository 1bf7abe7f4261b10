type Contestants = Readonly<Record<string, () => Promise<unknown>>>;
type Results<C extends Contestants> = { [Name in keyof C]: Awaited<ReturnType<C[Name]>>[] };

/**
 * Measures each contestant once per round, one after the other, so that a slow moment of the machine affects all of them. `bothOrders`
 * turns the order around in every other round, for differences of a percent.
 */
export async function inTurns<C extends Contestants>(
  rounds: number,
  contestants: C,
  { bothOrders = false } = {},
): Promise<Results<C>> {
  const results: Record<string, unknown[]> = {};
  const order = Object.entries(contestants);
  for (let round = 0; round < rounds; round++) {
    const turned = bothOrders && round % 2 === 1;
    for (const [name, measure] of turned ? order.toReversed() : order) {
      (results[name] ??= []).push(await measure());
    }
  }
  return results as Results<C>;
}
