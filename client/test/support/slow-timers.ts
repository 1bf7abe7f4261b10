/**
 * Preloaded into a program that cannot be given other options: its timers take 40 times as long. Otherwise the client in it would give
 * up on a server that replies late because the machine is busy.
 */
const { setTimeout: start } = globalThis;
const factor = 40;
const timerMsMax = 2 ** 31 - 1;

function startSlowly(run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) {
  return start(run, Math.min(factor * ms, timerMsMax), ...args);
}

globalThis.setTimeout = Object.assign(startSlowly, start);
