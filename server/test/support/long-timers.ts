/**
 * Preloaded into a server: its timers and socket timeouts of five seconds and more take a hundred times as long. A server that waits
 * for one of them does not end before the deadline of a test, so no test has to measure how long an end takes.
 */
import { Socket } from 'node:net';

const { setTimeout: start } = globalThis;
const longMs = 5_000;
const timerMsMax = 2 ** 31 - 1;

const lengthened = (ms: number): number => (ms < longMs ? ms : Math.min(100 * ms, timerMsMax));

function startLate(run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) {
  return start(run, lengthened(ms), ...args);
}

globalThis.setTimeout = Object.assign(startLate, start);

/** By which an HTTP server closes idle connections. */
const { setTimeout: startOnSocket } = Socket.prototype;
Socket.prototype.setTimeout = function (ms, callback) {
  return startOnSocket.call(this, lengthened(ms), callback);
};
