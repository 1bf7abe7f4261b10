/**
 * A decoding thread. It does everything with a body whose cost depends on what is in it, so that a body that was made to be slow delays
 * only its sender. The main thread ends it if a body takes too long, and starts another.
 */
import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { loadPriceList } from '../../core/prices/load-price-list.ts';
import { OwnPrices } from '../../core/prices/own-prices.ts';
import { openPricer } from '../../core/prices/pricer.ts';
import type { Pricer } from '../../core/prices/pricer.ts';
import { startOfCall } from '../../core/rollup.ts';
import { priceDraft } from '../../core/trace-cost.ts';
import { Failure } from '../../errors.ts';
import { TraceInputSchema } from '../trace-schemas.ts';
import { openValidators } from '../validators.ts';
import type { Validator } from '../validators.ts';
import { decode } from './decode.ts';
import type { DecodeTools } from './decode.ts';
import type { DecodeJob, DecodeReply, DecodedPart } from './decode-job.ts';

if (!parentPort) throw new Error('this file runs as a worker thread');
const port = parentPort;

/** The time of the job, since checks compare times with it. */
let nowUs = 0;
const compile = openValidators(
  () => nowUs,
  () => ({ TraceInput: TraceInputSchema }),
);
const validators = new Map<object, Validator>();
/** Small requests go first if the processors are busy. */
const niceness = 5;
let ownPrices = new OwnPrices([]);
let pricer: Pricer | null = null;

const tools: DecodeTools = {
  validatorOf: (schema) => validators.getOrInsertComputed(schema, () => compile({ schema })),
  async price(drafts, { prices, teamId }) {
    if (prices === null) return;
    pricer ??= openPricer(ownPrices, await loadPriceList());
    for (const draft of drafts) priceDraft(pricer, draft, teamId, startOfCall(draft, nowUs));
  },
};

port.on('message', (job: DecodeJob) => {
  nowUs = job.nowUs;
  // Kept even if this body turns out to be invalid: they are sent only once.
  if (job.prices?.entries) {
    ownPrices = new OwnPrices(job.prices.entries);
    pricer = null;
  }
  void decode(job, tools).catch(failed).then(answer);
});
lowerPriority();
port.postMessage({ kind: 'ready', threadId: threadId() });

function failed(error: unknown): DecodeReply {
  if (error instanceof Failure) {
    const { say, errors } = error.details;
    return { kind: 'failed', code: error.code, ...(say && { say }), ...(errors && { errors }) };
  }
  const cause = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { kind: 'failed', code: 'internal', cause };
}

function answer(reply: DecodeReply): void {
  const parts: readonly DecodedPart[] = reply.kind === 'decoded' ? reply.parts : [];
  const buffers = parts.flatMap(({ values, payloads, shown }) => [
    values.buffer,
    payloads.bytes,
    ...(shown ? [shown.bytes] : []),
  ]);
  port.postMessage(reply, buffers);
}

/** Best effort: a sandbox may forbid it. */
function lowerPriority(): void {
  // Elsewhere it would be the priority of the whole process.
  if (process.platform !== 'linux') return;
  try {
    setPriority(niceness);
  } catch {
    // Small requests are then not preferred.
  }
}

/** The operating system's number of this thread, by which the main thread reads its CPU time; null if there is none. */
function threadId(): number | null {
  try {
    return Number(readlinkSync('/proc/thread-self').split('/').at(-1));
  } catch {
    return null;
  }
}
