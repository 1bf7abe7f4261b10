import type { ListedTrace } from '../../../client/src/reading.ts';

/** A call in the timeline of its session or run. */
export interface TimelineCall {
  trace: ListedTrace;
  /** After the first call began. */
  offsetMs: number;
  /** Shares of the whole timeline, from 0 to 1. */
  left: number;
  width: number;
}

/** In the order in which the calls began. */
export function timelineOf(traces: readonly ListedTrace[]): TimelineCall[] {
  const calls = traces
    .map((trace) => ({ trace, ...timesOf(trace) }))
    .sort((a, b) => a.startMs - b.startMs);
  const firstMs = calls[0]?.startMs ?? 0;
  const lengthMs = Math.max(1, ...calls.map(({ endMs }) => endMs - firstMs));
  return calls.map(({ trace, startMs, endMs }) => ({
    trace,
    offsetMs: startMs - firstMs,
    left: (startMs - firstMs) / lengthMs,
    width: (endMs - startMs) / lengthMs,
  }));
}

/** A call without a start was recorded when it had ended. */
function timesOf({ started_at: started, created_at: created, latency_ms: latency }: ListedTrace) {
  const lastsMs = latency ?? 0;
  if (started !== undefined) {
    const startMs = Date.parse(started);
    return { startMs, endMs: startMs + lastsMs };
  }
  const endMs = Date.parse(created);
  return { startMs: endMs - lastsMs, endMs };
}
