import type { TraceTallyError } from './errors.ts';

type OnError = (error: Error) => unknown;

/** Passes problems to the caller's `onError` hook. Neither method ever throws. */
export interface Reporter {
  report(error: unknown): void;
  /** Reports each code once per hook, so that many clients with the same hook warn once. */
  reportOnce(error: TraceTallyError): void;
}

const reportedCodes = new WeakMap<OnError, Set<string>>();

export function createReporter(onError: OnError): Reporter {
  function report(error: unknown): void {
    try {
      const reported = error instanceof Error ? error : new Error(String(error));
      void Promise.resolve(onError(reported)).catch(() => {});
    } catch {
      // A failing hook must not reach the caller's code.
    }
  }

  return {
    report,
    reportOnce(error) {
      const codes = reportedCodes.get(onError) ?? new Set();
      reportedCodes.set(onError, codes);
      if (codes.has(error.code)) return;
      codes.add(error.code);
      report(error);
    },
  };
}
