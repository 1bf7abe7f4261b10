import type { DatabaseSync } from 'node:sqlite';
import { limits } from '../../limits.ts';
import { hasSchema } from './rollup-file.ts';

/** Caches analytics results until the next commit, so that a dashboard that polls costs almost nothing between writes. */
export interface AnalyticsCache {
  /** Returns the cached result if nothing was committed since; otherwise calls `read`, which must be synchronous. */
  get<T>(question: string, read: () => T): T;
}

export function openAnalyticsCache(reading: DatabaseSync): AnalyticsCache {
  // The values change when any other connection commits to a file, in this process or another. A change of the time zone is committed to
  // the rollup file only.
  const versions = ['main', 'rollup_file']
    .filter((schema) => hasSchema(reading, schema))
    .map((schema) => {
      const read = reading.prepare(`pragma ${schema}.data_version`);
      read.setReturnArrays(true);
      return read;
    });
  const answers = new Map<string, unknown>();
  let version = '';

  return {
    get<T>(question: string, read: () => T): T {
      const now = versions.map((read) => (read.get() as unknown as readonly unknown[])[0]).join();
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
