import type { Store } from '../../src/store/store.ts';
import { eventually } from './eventually.ts';

/**
 * Stores traces that a test needs. Other connections roll up or write at the same time, and on a busy machine one of them may hold the
 * store for longer than a write may wait. Nothing is stored then, so the write is repeated.
 */
export async function storeAtLast(
  store: Pick<Store, 'append'>,
  write: Parameters<Store['append']>[0][number],
): Promise<void> {
  let reason = '';
  await eventually(
    () => `a write (${reason})`,
    120_000,
    async () => {
      const [outcome] = await store.append([write]);
      if (outcome?.kind === 'stored') return true;
      reason = JSON.stringify(outcome);
      return outcome?.kind === 'failed' && outcome.code === 'store_unavailable'
        ? null
        : Promise.reject(new Error(reason));
    },
  );
}
