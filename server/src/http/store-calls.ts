import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../core/clock.ts';
import type { Admission } from '../ingest/admission.ts';
import type { Pricing } from '../ingest/pricing.ts';
import { limits } from '../limits.ts';
import { callOf } from './protocols/call-draft.ts';
import type { Call } from './protocols/call-draft.ts';
import { joinReports } from './protocols/same-calls.ts';
import { reasonToReject } from './protocols/signal.ts';
import type { Signal } from './protocols/signal.ts';
import { noSignals } from './signal-log.ts';
import type { SignalCounts } from './signal-log.ts';

export interface StoredCalls extends SignalCounts {
  /** Why signals were rejected, and how many for each reason. */
  reasons: ReadonlyMap<string, number>;
}

interface Destination {
  teamId: string;
  writes: Admission;
  pricing: Pricing;
  clock: Clock;
}

/**
 * Stores the model calls among the signals, each once. It resolves when all of them are committed. A large request is stored in parts; if
 * one of them fails, the caller sends all of it again, and the calls that are stored already are left out.
 */
export async function storeCalls(
  signals: Iterable<Signal>,
  { teamId, writes, pricing, clock }: Destination,
): Promise<StoredCalls> {
  const counts = noSignals();
  const reasons = new Map<string, number>();
  let calls: Call[] = [];
  let turnStartMs = performance.now();

  async function flush(): Promise<void> {
    if (calls.length === 0) return;
    const reported = joinReports(calls);
    counts.duplicate += calls.length - reported.length;
    calls = [];
    const drafts = reported.map(({ draft }) => draft);
    await pricing.price(teamId, drafts);
    const ids = reported.map((one) => one.ids);
    const appended = await writes.append(teamId, drafts, null, ids);
    if (appended.kind !== 'recorded') throw new Error('a request without a key was replayed');
    counts.stored += appended.traces.length;
    counts.duplicate += appended.duplicates;
    turnStartMs = performance.now();
  }

  const nowUs = clock();
  let count = 0;
  for (const signal of signals) {
    const call = readCall(signal, nowUs);
    if (call === null) counts.skipped += 1;
    else if (typeof call === 'string') {
      counts.rejected += 1;
      reasons.set(call, (reasons.get(call) ?? 0) + 1);
    } else calls.push(call);
    if (calls.length >= limits.otlpCallsMax) await flush();
    // Other requests have their turn, too.
    if (++count % checkedSignals === 0 && performance.now() - turnStartMs > limits.heavyTurnMsMax) {
      await nextTurn();
      turnStartMs = performance.now();
    }
  }
  await flush();
  return { ...counts, reasons };
}

const checkedSignals = 64;

/** The call, null if the signal is not one, or the reason why it cannot be stored. */
function readCall(signal: Signal, nowUs: number): ReturnType<typeof callOf> | string {
  try {
    return callOf(signal, nowUs);
  } catch (error) {
    return reasonToReject(error);
  }
}
