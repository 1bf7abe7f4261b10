import { record } from './seed.ts';
import type { Visit } from './stage.ts';

/** Traces with this many models and features. The first two names have 3 and 2 calls, the others one each. */
export async function recordNames(
  { service, key }: Visit,
  names: number,
  unlabelled = 0,
): Promise<void> {
  const name = (index: number): string => `name-${String(index).padStart(4, '0')}`;
  const indexes = [...Array.from({ length: names }, (_, index) => index), 0, 0, 1];
  await record(service, key, [
    ...indexes.map((index) => ({ model: name(index), feature_name: name(index), cost_usd: 0.25 })),
    ...Array.from({ length: unlabelled }, () => ({ model: name(0), cost_usd: 0.25 })),
  ]);
}
