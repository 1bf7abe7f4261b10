import type { FailedWrite, WriteOutcome } from './trace-writer.ts';

/** How one attempt at a batch of writes ended. */
export type BatchResult<O = WriteOutcome> =
  | { kind: 'stored'; outcomes: readonly O[] }
  /** Nothing is stored. If the store itself failed, smaller batches would fail too. */
  | (FailedWrite & { isOfStore: boolean });

/** Stores a batch. If one of its writes makes it fail, tries smaller batches, so that a bad write never fails another caller's. */
export function storeInHalves<W>(
  writes: readonly W[],
  attempt: (batch: readonly W[]) => BatchResult,
): WriteOutcome[] {
  const steps = halves<W, WriteOutcome>(writes);
  let step = steps.next();
  while (!step.done) step = steps.next(attempt(step.value));
  return step.value;
}

export async function storeInHalvesAsync<W, O = WriteOutcome>(
  writes: readonly W[],
  attempt: (batch: readonly W[]) => Promise<BatchResult<O>>,
): Promise<(O | FailedWrite)[]> {
  const steps = halves<W, O>(writes);
  let step = steps.next();
  while (!step.done) step = steps.next(await attempt(step.value));
  return step.value;
}

/** Yields the batches to try and receives their results. */
function* halves<W, O>(
  writes: readonly W[],
): Generator<readonly W[], (O | FailedWrite)[], BatchResult<O>> {
  const result = yield writes;
  if (result.kind === 'stored') return [...result.outcomes];
  if (result.isOfStore || writes.length <= 1) return failAll(writes, result);
  const middle = writes.length >> 1;
  const left = yield* halves<W, O>(writes.slice(0, middle));
  return [...left, ...(yield* halves<W, O>(writes.slice(middle)))];
}

export function failAll(
  writes: readonly unknown[],
  { code, reason }: Omit<FailedWrite, 'kind'>,
): FailedWrite[] {
  return writes.map(() => ({ kind: 'failed', code, reason }));
}
