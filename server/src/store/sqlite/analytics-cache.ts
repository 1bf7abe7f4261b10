import type { DatabaseSync } from 'node:sqlite';
import { limits } from '../../limits.ts';

/** Caches analytics results until the next commit, so that a dashboard that polls costs almost nothing between writes. */
export interface AnalyticsCache {
  /** Returns the cached result if nothing was committed since; otherwise calls `read`, which must be synchronous. */
  get<T>(question: string, read: () => T): T;
}

export function openAnalyticsCache(reading: DatabaseSync): AnalyticsCache {
  // The value changes when any other connection commits, in this process or another.
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
