/**
 * Preloaded into a server: notes how much processor time the turns of its event loop take. A turn in which the main thread works for
 * long delays every request. Elapsed time would say the same only on a machine that has nothing else to do.
 */
import { appendFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

const everyMs = 10;

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** A fixed calculation: how much processor time it takes shows how fast the machine is. */
function controlMs(): number {
  const before = cpuMs();
  let text = '';
  for (let i = 0; i < 20; i++) {
    const items = Array.from({ length: 2_000 }, (_, at) => ({ name: `item ${at}`, at }));
    text = JSON.stringify(JSON.parse(JSON.stringify(items)));
  }
  return text === '' ? 0 : cpuMs() - before;
}

const path = process.env['TURN_WATCH_FILE'];
if (isMainThread && path !== undefined) {
  // The first one also compiles.
  const control = [1, 2, 3, 4].map(controlMs).slice(1);
  appendFileSync(path, `${Math.min(...control)}\n`);
  let lastMs = cpuMs();
  const look = (): void => {
    const nowMs = cpuMs();
    // Between two looks there is at most one long turn.
    if (nowMs - lastMs > 2 * everyMs) appendFileSync(path, `${nowMs - lastMs}\n`);
    lastMs = cpuMs();
    setTimeout(look, everyMs).unref();
  };
  look();
}
