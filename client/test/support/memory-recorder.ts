import type { TraceInput } from '../../src/api-types.ts';
import type { TraceTallyError } from '../../src/errors.ts';
import type { Recorder } from '../../src/recorder.ts';

export interface MemoryRecorder extends Recorder {
  traces: TraceInput[];
  errors: unknown[];
  /** Codes of what was reported by `reportOnce`, each time. */
  warnings: string[];
  /** All that was recorded, once there are so many and no more come. */
  settled(count: number): Promise<TraceInput[]>;
}

/** Keeps what is recorded in a list. */
export function memoryRecorder(): MemoryRecorder {
  const traces: TraceInput[] = [];
  const errors: unknown[] = [];
  const warnings: string[] = [];
  return {
    traces,
    errors,
    warnings,
    enqueue: (trace) => void traces.push(trace),
    report: (error) => void errors.push(error),
    reportOnce: (error: TraceTallyError) => void warnings.push(error.code),
    async settled(count) {
      const untilMs = performance.now() + 120_000;
      while (traces.length < count && performance.now() < untilMs) await turn(5);
      // One that came too often would come about now.
      await turn(20);
      return traces;
    },
  };
}

export function turn(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
