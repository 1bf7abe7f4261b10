import type { BatchReply, Rejection } from './api-types.ts';
import { withRetries } from './backoff.ts';
import type { Failure, RetryRule } from './backoff.ts';
import { TraceTallyError, tracesInWords, withWhatItMeant } from './errors.ts';
import { joinItems } from './queue.ts';
import type { Item } from './queue.ts';
import { fits } from './reply-check.ts';
import { batchReplyShape } from './reply-shapes.ts';
import { newIdempotencyKey } from './transport.ts';
import type { Transport } from './transport.ts';

/** How a piece of a batch ended. The three numbers add up to the traces in it. */
export interface Outcome {
  stored: number;
  rejected: number;
  failed: number;
  /** What there is to tell about it. */
  error: TraceTallyError | null;
}

export interface Delivery {
  transport: Transport;
  rule: RetryRule;
  sleep(ms: number, failure: Failure): Promise<void>;
  /** Called once for each piece, and for every trace of the batch in one of them. */
  settle(items: readonly Item[], outcome: Outcome): void;
  /** Ends all tries. */
  signal: AbortSignal;
}

/** Sends a batch until it is settled, in pieces where it is too large. Never throws. */
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
  const { transport, rule, sleep, signal } = delivery;
  const body = await transport.prepare(joinItems(items));
  // One key for all tries of this piece: however often it arrives, it is stored once.
  const idempotencyKey = newIdempotencyKey();
  const path = '/traces/batch?omit=input,output';
  const isReply = (reply: unknown): reply is BatchReply =>
    fits<BatchReply>(reply, batchReplyShape) &&
    reply.traces.length + reply.rejected.length === items.length;
  const call = { method: 'POST', path, body, idempotencyKey, signal, isReply } as const;
  return withRetries(() => transport.try(call), rule, sleep);
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
    detail: `The server refused ${tracesInWords(rejected.length)} of a batch and stored the others.`,
    errors: rejected.flatMap(({ index, errors }) =>
      errors.map(({ field, message }) => ({ field: fieldInBatch(index, field), message })),
    ),
  });
}

/** The server names the trace itself `trace` where no single field is wrong. */
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
  // Whoever calls tries off tells of all traces at once.
  if (error.code === 'aborted') return { stored: 0, rejected: 0, failed: count, error: null };
  const isRefusal = error.code === 'invalid_input' || isTooLarge(error);
  const meaning = `${tracesInWords(count)} ${isRefusal ? 'refused' : 'given up'}`;
  return {
    stored: 0,
    rejected: isRefusal ? count : 0,
    failed: isRefusal ? 0 : count,
    error: withWhatItMeant(error, meaning),
  };
}

function isTooLarge(error: unknown): boolean {
  return error instanceof TraceTallyError && error.status === 413;
}
