type Contestants = Readonly<Record<string, () => Promise<unknown>>>;
type Results<C extends Contestants> = { [Name in keyof C]: Awaited<ReturnType<C[Name]>>[] };

/** Measures each contestant once per round, one after the other, so that a slow moment of the machine affects all of them. */
export async function inTurns<C extends Contestants>(
  rounds: number,
  contestants: C,
): Promise<Results<C>> {
  const results: Record<string, unknown[]> = {};
  for (let round = 0; round < rounds; round++) {
    for (const [name, measure] of Object.entries(contestants)) {
      (results[name] ??= []).push(await measure());
    }
  }
  return results as Results<C>;
}
