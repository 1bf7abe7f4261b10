import { spawn } from 'node:child_process';
import { readFileSync, writeSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Scene } from './scene.ts';

/** A program of the soak, as the process that started it sees it. */
export interface Program<Report> {
  /** Its last report; null before the first. */
  report(): Report | null;
  /** Asks it to stop and waits for its end; ends it by force if that takes too long. */
  stop(withinMs: number): Promise<void>;
}

/** Starts one of the programs in this folder in a separate process. */
export function startProgram<Report>(file: string, scenePath: string): Program<Report> {
  const path = fileURLToPath(new URL(file, import.meta.url));
  // The program stops when its standard input closes, so it cannot outlive this process.
  const child = spawn(process.execPath, [path, scenePath], { stdio: ['pipe', 'pipe', 'inherit'] });
  let unread = '';
  let last: Report | null = null;
  child.stdout.on('data', (data: Buffer) => {
    const lines = `${unread}${data.toString()}`.split('\n');
    unread = lines.pop() ?? '';
    const line = lines.at(-1);
    if (line !== undefined) last = JSON.parse(line) as Report;
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  return {
    report: () => last,
    async stop(withinMs) {
      child.stdin.end();
      const late = setTimeout(() => child.kill('SIGKILL'), withinMs);
      await ended;
      clearTimeout(late);
    },
  };
}

/** The other side: what a program does first. */
export function beginProgram(): {
  scene: Scene;
  isStopping(): boolean;
  stopped: AbortSignal;
  print(report: object): void;
} {
  const scene = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as Scene;
  const stop = new AbortController();
  process.stdin.resume();
  process.stdin.once('close', () => stop.abort());
  setTimeout(() => stop.abort(), Math.max(0, scene.endsAtMs - Date.now())).unref();
  return {
    scene,
    isStopping: () => stop.signal.aborted,
    stopped: stop.signal,
    print: (report) => void writeSync(1, `${JSON.stringify(report)}\n`),
  };
}
