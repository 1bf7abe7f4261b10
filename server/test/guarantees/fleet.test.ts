import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { chooseSeed, seededRandom, shuffled } from '../support/seeded-random.ts';
import { eventually } from '../support/eventually.ts';
import { runCli } from '../support/cli.ts';
import { usePostgres } from '../support/postgres.ts';
import { temporaryFolder } from '../support/service.ts';
import { makeTeams, rounds } from './crash-lab.ts';
import type { LoadTeam } from './crash-lab.ts';
import { checkFleet } from './fleet-check.ts';
import { openPostgresKills } from './fleet-kills.ts';
import { startFleet, startFleetLoad } from './fleet-lab.ts';
import type { Fleet, FleetLoad } from './fleet-lab.ts';

const postgres = usePostgres();
const servers = 4;
const clients = 32;
/** Between one kill and the next, so that each of them hits servers at work. */
const acknowledgedBetween = 50;

test('kills of four servers and of their PostgreSQL lose no trace of a busy team and of 199 others', (t) =>
  surviveKills(t, 200, rounds(2)));

test('a kill of PostgreSQL leaves none of its processes behind, not even those that it has just started', async () => {
  const before = postgres.processes();
  assert.ok(before.length > 1);
  let isOver = false;
  const connect = async (): Promise<void> => {
    while (!isOver) await postgres.sql(postgres.url('postgres'), 'select 1').catch(() => {});
  };
  const connecting = Array.from({ length: clients }, connect);
  await eventually('a new process', 120_000, () => postgres.processes().length > before.length);
  await postgres.kill();
  const left = postgres.processes();
  isOver = true;
  await Promise.all(connecting);
  await postgres.start();
  assert.deepEqual(left, []);
});

async function surviveKills(t: TestContext, teamCount: number, roundCount: number): Promise<void> {
  const seed = chooseSeed();
  const random = seededRandom(seed);
  t.diagnostic(`seed ${seed}`);
  const folder = temporaryFolder();
  const logPath = join(folder.path, 'requests.log');
  const database = await postgres.createDatabase();
  const teams = await makeTeams({ kind: 'postgres', url: database }, teamCount);
  const logBytes = postgres.log().length;
  const fleet = await startFleet(database, servers);
  const load = startFleetLoad(fleet, logPath, clients, seed, teams);
  try {
    const kills = await killAtRandom(fleet, load, database, random, roundCount);
    await fleet.settle();
    const answers = await load.end();
    assert.deepEqual(fleet.fallen(), [], 'servers ended without being killed');

    const deadlocks = assertWasHit(postgres.log().slice(logBytes), kills);
    const check = await checkFleet(postgres, database, logPath, teams);
    const { violations } = check;
    assert.deepEqual(violations.slice(0, 10), [], `${violations.length} violations, seed ${seed}`);
    const statuses = Object.keys(answers).filter((status) => /^\d+$/.test(status));
    assert.deepEqual(statuses, ['201', '503'], JSON.stringify(answers));
    await assertAllAgree(fleet, database, teams, check.stored);
    t.diagnostic(
      `killed: ${kills.server} servers, ${kills.connections} connections, ${kills.backend} backends, ` +
        `${kills.postgres} times all of PostgreSQL; ${check.requests} requests, ${check.acknowledged} acknowledged, ` +
        `${check.stored} traces, 0 lost, 0 twice, ${deadlocks} deadlocks; failed ${check.failed}, stored without ` +
        `an answer ${check.storedUnanswered}; idempotent: sent again ${answers['sentAgain']}, replayed ${check.replays}`,
    );
    // Few kills may not hit a request at the right moment.
    if (roundCount > 1)
      assert.ok(check.replays > 0, 'no retry found what another server had stored');
  } finally {
    load.drop();
    await fleet.end();
    folder.remove();
  }
}

interface Kills {
  server: number;
  connections: number;
  backend: number;
  postgres: number;
}

/** Kills of every kind in random order at random moments, many of them before the fleet has recovered from the last. */
async function killAtRandom(
  fleet: Fleet,
  load: FleetLoad,
  database: string,
  random: () => number,
  roundCount: number,
): Promise<Kills> {
  const done: Kills = { server: 0, connections: 0, backend: 0, postgres: 0 };
  const { cutConnections, killBackend, killAll } = openPostgresKills(postgres, database);
  const killServer = async (): Promise<void> => {
    await eventually('a server to kill', 120_000, () => fleet.killOne(random));
    done.server += 1;
  };
  const kinds = {
    server: killServer,
    connections: async () => void (done.connections += await cutConnections()),
    async backend() {
      await killBackend();
      done.backend += 1;
    },
    async postgres() {
      const restarted = killAll(random() * 300);
      // Servers also die while their database is down.
      if (random() < 0.5) await killServer();
      await restarted;
      done.postgres += 1;
    },
  };
  for (let round = 0; round < roundCount; round++) {
    const order = shuffled(random, [...Object.values(kinds), kinds.connections, kinds.server]);
    for (const kill of order) {
      const before = load.acknowledged();
      const isAtWork = () => load.acknowledged() - before >= acknowledgedBetween;
      await eventually('servers at work', 120_000, isAtWork, 10);
      await sleep(random() * 300);
      await kill();
    }
  }
  return done;
}

/** The log of PostgreSQL shows that it was hit, and that it never had to break a deadlock. */
function assertWasHit(log: string, kills: Kills): number {
  const logged = (words: RegExp): number => log.match(words)?.length ?? 0;
  assert.ok(logged(/terminating connection due to administrator command/g) > 0);
  assert.ok(logged(/was terminated by signal 9/g) >= kills.backend);
  assert.ok(logged(/database system was interrupted/g) >= kills.backend + kills.postgres);
  const deadlocks = logged(/deadlock detected/g);
  assert.equal(deadlocks, 0, log);
  return deadlocks;
}

/** `verify` recounts everything, and each server shows what is stored. */
async function assertAllAgree(
  fleet: Fleet,
  database: string,
  teams: readonly LoadTeam[],
  stored: number,
): Promise<void> {
  const { stdout, stderr } = await runCli(['verify', '--json'], { TRACETALLY_DATABASE: database });
  assert.deepEqual(
    JSON.parse(stdout),
    { ok: true, teams: teams.length, traces: stored, differences: [] },
    stderr,
  );
  const counts = await postgres.sql(
    database,
    'select team_id, count(*)::integer as count from traces group by 1 order by 2 desc limit 4',
  );
  for (const { team_id: teamId, count } of counts) {
    const key = teams.find(({ id }) => id === teamId)?.key ?? '';
    for (const url of fleet.urls()) {
      const read = async (path: string) =>
        (await (
          await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${key}` } })
        ).json()) as Record<string, unknown>;
      assert.equal((await read('/traces?limit=1'))['total'], count);
      assert.equal((await read('/analytics/overview'))['total_calls'], count);
    }
  }
}
