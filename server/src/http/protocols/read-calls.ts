import { fail } from '../../errors.ts';
import type { DecodeJob, DecodedSignals } from '../decoding/decode-job.ts';
import { callOf } from './call-draft.ts';
import type { Call } from './call-draft.ts';
import type { Signals } from './otlp-signals.ts';
import { joinReports } from './same-calls.ts';
import type { ReportedCall } from './same-calls.ts';
import { RejectedSignal, reasonToReject } from './signal.ts';
import type { Signal } from './signal.ts';
import { textBytesOf } from './text-bytes.ts';

/** The model calls among the signals of a request, each once. */
export function readCalls(
  signals: Signals,
  {
    nowUs,
    traceBytesMax,
    bodyBytesMax,
  }: Pick<DecodeJob, 'nowUs' | 'traceBytesMax' | 'bodyBytesMax'>,
): { calls: ReportedCall[]; signals: DecodedSignals } {
  const calls: Call[] = [];
  const reasons = new Map<string, number>();
  let skipped = 0;
  let rejected = 0;
  let textBytes = 0;
  for (const signal of signals) {
    const call = readCall(signal, nowUs, traceBytesMax);
    if (call === null) skipped += 1;
    else if (typeof call === 'string') {
      rejected += 1;
      reasons.set(call, (reasons.get(call) ?? 0) + 1);
    } else {
      calls.push(call);
      textBytes += textBytesOf(call.draft);
      // Lists and objects become JSON, which may be several times as long as what was sent.
      if (textBytes > 2 * bodyBytesMax) {
        fail('body_too_large', {
          say: `The texts of this request are longer than ${2 * bodyBytesMax} bytes.`,
        });
      }
    }
  }
  const joined = joinReports(calls, traceBytesMax);
  return {
    calls: joined,
    signals: {
      total: signals.count,
      skipped,
      rejected,
      duplicate: calls.length - joined.length,
      reasons: [...reasons],
    },
  };
}

/** The call, null if the signal is not one, or the reason why it cannot be stored. */
function readCall(signal: Signal, nowUs: number, textBytesMax: number): Call | string | null {
  try {
    const call = callOf(signal, nowUs);
    if (call !== null && textBytesOf(call.draft) > textBytesMax) {
      throw new RejectedSignal(`its texts are longer than ${textBytesMax} bytes`);
    }
    return call;
  } catch (error) {
    return reasonToReject(error);
  }
}
