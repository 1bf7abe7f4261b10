import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { chooseSeed, seededRandom } from '../support/seeded-random.ts';
import { spawnServer } from '../support/cli.ts';
import type { ServerProcess } from '../support/cli.ts';
import { temporaryFolder } from '../support/service.ts';
import { compareWithStore, makeTeams, rounds, startLoad } from '../guarantees/crash-lab.ts';

const clients = 32;
const teamCount = 4;
/** Ready again after a crash, compared with a first start. */
const longerMax = 3;

test('kill -9 under load loses no acknowledged trace, stores none twice, and the service is back about as soon as after a first start', async (t) => {
  const seed = chooseSeed();
  const random = seededRandom(seed);
  t.diagnostic(`seed ${seed}`);
  const folder = temporaryFolder();
  const databasePath = join(folder.path, 'crash.db');
  const flags = ['--database', `sqlite:${databasePath}`, '--log-level', 'warn'];
  const teams = await makeTeams(databasePath, teamCount);
  const readyMs: number[] = [];
  const firstMs: number[] = [];
  let last = { acknowledged: 0, stored: 0 };
  const count = rounds(4);
  for (let round = 1; round <= count; round++) {
    const control = `sqlite:${join(folder.path, `control-${round}.db`)}`;
    const first = await timedStart(['--database', control, '--log-level', 'warn']);
    await first.server.end('SIGKILL');
    const { server, ms } = await timedStart(flags);
    // The first start has nothing to recover.
    if (round > 1) readyMs.push(ms);
    firstMs.push(first.ms);
    const load = startLoad(server.url, folder.path, clients, round, teams);
    await load.begun();
    await sleep(random() * 500);
    assert.equal(await server.end('SIGKILL'), null);
    const answers = await load.end();
    assert.deepEqual(Object.keys(answers), ['201'], `round ${round}: ${JSON.stringify(answers)}`);

    const now = await compareWithStore(databasePath, folder.path, teams);
    assert.deepEqual(now.lost, [], `round ${round}, seed ${seed}`);
    assert.deepEqual(now.twice, [], `round ${round}, seed ${seed}`);
    // Each client may have had one request under way that was stored but not answered.
    const unanswered = now.stored - now.acknowledged - (last.stored - last.acknowledged);
    assert.ok(unanswered >= 0 && unanswered <= clients, `round ${round}: ${unanswered} unanswered`);
    assert.ok(now.acknowledged > last.acknowledged, `round ${round} acknowledged nothing`);
    last = now;
  }
  const sorted = readyMs.toSorted((a, b) => a - b);
  const [fastest = Infinity, slowest = 0] = [sorted[0], sorted.at(-1)];
  t.diagnostic(
    `${count} rounds, ${last.acknowledged} acknowledged, 0 lost, 0 twice; ready again after ` +
      `${Math.round(fastest)} ms to ${Math.round(slowest)} ms; first starts took at least ${Math.round(Math.min(...firstMs))} ms`,
  );
  // The fastest, since a busy machine may slow down any of them.
  assert.ok(
    fastest < longerMax * Math.min(...firstMs),
    `ready after ${Math.round(fastest)} ms, a first start takes ${Math.round(Math.min(...firstMs))} ms`,
  );
  folder.remove();
});

/** Starts a server, and measures how long it takes until it is ready. */
async function timedStart(
  flags: readonly string[],
): Promise<{ server: ServerProcess; ms: number }> {
  const startMs = performance.now();
  const server = await spawnServer(flags);
  assert.equal((await fetch(`${server.url}/readyz`)).status, 200);
  return { server, ms: performance.now() - startMs };
}
