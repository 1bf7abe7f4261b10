/**
 * Preloaded into a server: its timers of five seconds and more take a hundred times as long. A server that waits for one of them does
 * not end before the deadline of a test, so no test has to measure how long an end takes.
 */
const { setTimeout: start } = globalThis;
const longMs = 5_000;
const timerMsMax = 2 ** 31 - 1;

function startLate(run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) {
  return start(run, ms < longMs ? ms : Math.min(100 * ms, timerMsMax), ...args);
}

globalThis.setTimeout = Object.assign(startLate, start);
