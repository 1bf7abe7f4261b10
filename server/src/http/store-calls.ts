import type { Admission } from '../ingest/admission.ts';
import { Failure } from '../errors.ts';
import { partRowsMax } from './decoding/decoded-parts.ts';
import type { DecodedBody } from './decoding/decoded-body.ts';
import type { SignalCounts } from './signal-log.ts';

/**
 * Stores the model calls of a request, each once, and returns what became of its signals. It resolves when all of them are committed. A
 * large request is stored in parts, so that other teams have their turns in between. It holds room for all of them from the beginning;
 * if the store fails, the caller sends the request again, and the calls that are stored already are left out.
 */
export async function storeCalls(
  body: DecodedBody,
  teamId: string,
  writes: Admission,
): Promise<SignalCounts> {
  const { skipped, rejected, duplicate } = body.signals;
  const counts: SignalCounts = { stored: 0, duplicate, skipped, rejected };
  if (body.rows === 0) return counts;
  const parts = body.parts();
  const reservation = writes.reserve(teamId, Math.min(body.rows, roomRowsMax), body.bytes);
  let failure: unknown = null;

  async function storeNext(): Promise<void> {
    for (const { drafts, calls, payloads } of parts) {
      if (failure !== null) return;
      const appended = await writes.append(teamId, drafts, null, { calls, payloads, reservation });
      if (appended.kind !== 'recorded') throw new Error('a request without a key was replayed');
      counts.stored += appended.traces.length;
      counts.duplicate += appended.duplicates;
    }
  }

  const noteFailure = (error: unknown): void => {
    failure ??= error;
  };
  try {
    await Promise.all(Array.from({ length: partsAtOnce }, () => storeNext().catch(noteFailure)));
  } finally {
    reservation.release();
  }
  if (failure !== null) {
    throw counts.stored > 0 ? partlyStored(failure, counts.stored, body.rows) : failure;
  }
  return counts;
}

/** Enough to keep the store busy. */
const partsAtOnce = 8;
/** A request never has more traces at the store, so it needs no more room. */
const roomRowsMax = partsAtOnce * partRowsMax;

function partlyStored(error: unknown, stored: number, all: number): unknown {
  if (!(error instanceof Failure)) return error;
  const say = `Only ${stored} of the ${all} calls in this request are known to be stored. Send the whole request again: calls with ids are not stored twice.`;
  return new Failure(error.code, { ...error.details, say });
}
