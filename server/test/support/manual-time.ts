import type { TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';

export interface ManualTime {
  nowMs(): number;
  /** As if the thread had been busy: the time passes, and nothing else happens. */
  work(ms: number): void;
  /** Resolves when whatever is due by then has been done. */
  pass(ms: number): Promise<void>;
}

/** `performance.now` and `setTimeout` of a test: time passes only when the test lets it pass, so that no busy machine is late. */
export function manualTime(t: TestContext): ManualTime {
  let nowMs = 0;
  let passedMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  return {
    nowMs: () => nowMs,
    work: (ms) => void (nowMs += ms),
    async pass(ms) {
      nowMs += ms;
      t.mock.timers.tick(nowMs - passedMs);
      passedMs = nowMs;
      await nextTurn();
    },
  };
}
