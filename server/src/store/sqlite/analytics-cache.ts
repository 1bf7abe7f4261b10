import type { DatabaseSync } from 'node:sqlite';
import { limits } from '../../limits.ts';

/** Answers that stay true until somebody commits: a dashboard that polls costs next to nothing between writes. */
export interface AnalyticsCache {
  /** The cached answer if nothing was committed since; otherwise reads it now. `read` must not yield. */
  get<T>(question: string, read: () => T): T;
}

export function openAnalyticsCache(reading: DatabaseSync): AnalyticsCache {
  // It changes when another connection, of this process or another, has committed.
  const readVersion = reading.prepare('pragma data_version');
  readVersion.setReturnArrays(true);
  const answers = new Map<string, unknown>();
  let version: unknown = null;

  return {
    get<T>(question: string, read: () => T): T {
      const [now] = readVersion.get() as unknown as readonly unknown[];
      if (now !== version) {
        answers.clear();
        version = now;
      }
      const known = answers.get(question) as T | undefined;
      if (known !== undefined) return known;
      if (answers.size >= limits.answersKeptMax) answers.clear();
      const answer = read();
      answers.set(question, answer);
      return answer;
    },
  };
}
