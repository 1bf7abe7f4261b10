/**
 * One `beforeExit` listener for all clients of a process, and only while one of them has traces to send. It runs when the event loop is
 * empty; the requests that it starts keep the process alive.
 */
interface EndingProcess {
  on?(event: 'beforeExit', listener: () => void): unknown;
  off?(event: 'beforeExit', listener: () => void): unknown;
}

const waiting = new Set<() => void>();

function runAll(): void {
  for (const run of waiting) run();
}

export function beforeProcessEnds(run: () => void): void {
  if (waiting.has(run)) return;
  waiting.add(run);
  if (waiting.size === 1) currentProcess()?.on?.('beforeExit', runAll);
}

export function forgetProcessEnd(run: () => void): void {
  if (waiting.delete(run) && waiting.size === 0) currentProcess()?.off?.('beforeExit', runAll);
}

function currentProcess(): EndingProcess | undefined {
  return (globalThis as { process?: EndingProcess }).process;
}
