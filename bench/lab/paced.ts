import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { watchChild } from './children.ts';
import type { PacedAnswer } from './paced-load.ts';

/** What an honest team saw in a span of time. */
export interface PacedView {
  writes: number;
  failed: number;
  p50Ms: number;
  p90Ms: number;
  p99Ms: number;
  slowestMs: number;
  slowestHealthMs: number;
}

/** Writes at a fixed rate in another process. */
export interface PacedLoad {
  /** What was due between these times, in milliseconds since 1970; of several spans, together. */
  view(...spans: readonly (readonly [fromMs: number, toMs: number])[]): PacedView;
  stop(): Promise<void>;
  /** Resolves when the time is over and everything was answered. */
  ended: Promise<void>;
}

export function startPaced(
  url: string,
  key: string,
  { perSecond, seconds }: { perSecond: number; seconds: number },
): PacedLoad {
  const program = fileURLToPath(new URL('paced-load.ts', import.meta.url));
  const args = [program, url, key, String(perSecond), String(seconds)];
  const child = watchChild(spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] }));
  const answers: PacedAnswer[] = [];
  createInterface(child.stdout).on('line', (line) => {
    answers.push(JSON.parse(line) as PacedAnswer);
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  return {
    ended,
    view: (...spans) =>
      viewOf(
        answers.filter(({ dueMs }) => spans.some(([from, to]) => dueMs >= from && dueMs < to)),
      ),
    async stop() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

function viewOf(answers: readonly PacedAnswer[]): PacedView {
  const times = (kind: PacedAnswer['kind']): number[] =>
    answers
      .filter((answer) => answer.kind === kind)
      .map(({ tookMs }) => tookMs)
      .sort((a, b) => a - b);
  const writes = times('write');
  const at = (share: number): number =>
    writes[Math.floor((writes.length - 1) * share)] ?? Number.NaN;
  return {
    writes: writes.length,
    failed: answers.filter(({ kind, status }) => status !== (kind === 'write' ? 201 : 200)).length,
    p50Ms: at(0.5),
    p90Ms: at(0.9),
    p99Ms: at(0.99),
    slowestMs: at(1),
    slowestHealthMs: times('health').at(-1) ?? Number.NaN,
  };
}
