import type { DatabaseSync } from 'node:sqlite';
import { limits } from '../../limits.ts';

/** Answers that hold as long as nothing is committed, by anybody: a dashboard that polls costs next to nothing between writes. */
export interface AnswerMemo {
  /** The remembered answer, where nothing was committed since. */
  recall(question: string): unknown;
  /** Keeps an answer that was read after the `recall` of the same question, in the same turn. */
  keep(question: string, answer: unknown): void;
}

export function openAnswerMemo(reading: DatabaseSync): AnswerMemo {
  // It differs from the last time when another connection has committed, be it of this process or of another.
  const readVersion = reading.prepare('pragma data_version');
  readVersion.setReturnArrays(true);
  const answers = new Map<string, unknown>();
  let version: unknown = null;

  return {
    recall(question) {
      const [now] = readVersion.get() as unknown as readonly unknown[];
      if (now === version) return answers.get(question);
      answers.clear();
      version = now;
      return undefined;
    },
    keep(question, answer) {
      if (answers.size >= limits.answersKeptMax) answers.clear();
      answers.set(question, answer);
    },
  };
}
