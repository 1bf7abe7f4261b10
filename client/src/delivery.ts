import type { BatchReply, Rejection } from './api-types.ts';
import { letProcessEndDuring } from './background-socket.ts';
import { withRetries } from './backoff.ts';
import type { Failure, RetryRule } from './backoff.ts';
import { TraceTallyError, tracesInWords, withConsequence } from './errors.ts';
import { joinItems } from './queue.ts';
import type { Item } from './queue.ts';
import { fits } from './reply-check.ts';
import { batchReplyShape } from './reply-shapes.ts';
import type { StartTimer } from './timers.ts';
import { newIdempotencyKey } from './transport.ts';
import type { Transport } from './transport.ts';

/** Result of a piece of a batch. The three numbers add up to the traces in it. */
export interface Outcome {
  stored: number;
  rejected: number;
  failed: number;
  /** What to report about it. */
  error: TraceTallyError | null;
}

export interface Delivery {
  transport: Transport;
  rule: RetryRule;
  sleep(ms: number, failure: Failure): Promise<void>;
  /** Starts the timers of the requests, which must not keep the process alive by themselves. */
  startTimer: StartTimer;
  /** Called once for each piece, and for every trace of the batch in one of them. */
  settle(items: readonly Item[], outcome: Outcome): void;
  /** Ends all attempts. */
  signal: AbortSignal;
}

/** Sends a batch until it is settled, in pieces if it is too large. Never throws. */
export async function deliver(items: readonly Item[], delivery: Delivery): Promise<void> {
  let outcome: Outcome;
  try {
    outcome = stored(await send(items, delivery));
  } catch (error) {
    if (isTooLarge(error) && items.length > 1) {
      const middle = Math.ceil(items.length / 2);
      await deliver(items.slice(0, middle), delivery);
      await deliver(items.slice(middle), delivery);
      return;
    }
    outcome = notStored(items.length, error);
  }
  delivery.settle(items, outcome);
}

async function send(items: readonly Item[], delivery: Delivery): Promise<BatchReply> {
  const { transport, rule, sleep, signal, startTimer } = delivery;
  const body = await transport.prepare(joinItems(items));
  // One key for all attempts of this piece, so that it is stored once no matter how often it arrives.
  const idempotencyKey = newIdempotencyKey();
  const path = '/traces/batch?omit=input,output&price_missing_costs=true';
  const isReply = (reply: unknown): reply is BatchReply =>
    fits<BatchReply>(reply, batchReplyShape) &&
    reply.traces.length + reply.rejected.length === items.length;
  const call = { path, body, idempotencyKey, signal, startTimer, isReply };
  const endRequest = letProcessEndDuring(idempotencyKey);
  try {
    return await withRetries(() => transport.try({ method: 'POST', ...call }), rule, sleep);
  } finally {
    endRequest();
  }
}

function stored({ traces, rejected }: BatchReply): Outcome {
  return {
    stored: traces.length,
    rejected: rejected.length,
    failed: 0,
    error: rejected.length === 0 ? null : rejectionError(rejected),
  };
}

function rejectionError(rejected: readonly Rejection[]): TraceTallyError {
  return new TraceTallyError({
    status: 201,
    code: 'traces_rejected',
    detail: `The server rejected ${tracesInWords(rejected.length)} of a batch and stored the other traces.`,
    errors: rejected.flatMap(({ index, errors }) =>
      errors.map(({ field, message }) => ({ field: fieldInBatch(index, field), message })),
    ),
  });
}

/** If no single field is wrong, the server names the field `trace`. */
function fieldInBatch(index: number, field: string): string {
  return field === 'trace' ? `traces.${index}` : `traces.${index}.${field}`;
}

function notStored(count: number, thrown: unknown): Outcome {
  const error =
    thrown instanceof TraceTallyError
      ? thrown
      : new TraceTallyError({
          code: 'client_error',
          detail: 'The batch could not be sent.',
          cause: thrown,
        });
  // The code that aborts the attempts reports all traces at once.
  if (error.code === 'aborted') return { stored: 0, rejected: 0, failed: count, error: null };
  const isRejection = error.code === 'invalid_input' || isTooLarge(error);
  const consequence = `${isRejection ? 'Rejected' : 'Gave up on'} ${tracesInWords(count)}`;
  return {
    stored: 0,
    rejected: isRejection ? count : 0,
    failed: isRejection ? 0 : count,
    error: withConsequence(error, consequence),
  };
}

function isTooLarge(error: unknown): boolean {
  return error instanceof TraceTallyError && error.status === 413;
}
