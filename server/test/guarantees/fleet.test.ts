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
import { readBooks } from './fleet-books.ts';
import { openPostgresKills } from './fleet-kills.ts';
import { startFleet, startFleetLoad } from './fleet-lab.ts';
import type { Fleet, FleetLoad } from './fleet-lab.ts';

const postgres = usePostgres();
const servers = 4;
const clients = 64;
/** Between one blow and the next, so that each of them meets servers at work. */
const acknowledgedBetween = 50;

test('four servers on one PostgreSQL, and kills of all of them: one busy team loses nothing', (t) =>
  surviveMayhem(t, 1));

test('four servers on one PostgreSQL, and kills of all of them: 1,000 teams lose nothing', (t) =>
  surviveMayhem(t, 1000));

async function surviveMayhem(t: TestContext, teamCount: number): Promise<void> {
  const seed = chooseSeed();
  const random = seededRandom(seed);
  t.diagnostic(`seed ${seed}`);
  const folder = temporaryFolder();
  const ledgerPath = join(folder.path, 'ledger.txt');
  const database = await postgres.createDatabase();
  const teams = await makeTeams({ kind: 'postgres', url: database }, teamCount);
  const logBytes = postgres.log().length;
  const fleet = await startFleet(database, servers);
  const load = startFleetLoad(fleet, ledgerPath, clients, teams);
  try {
    const kills = await makeMayhem(fleet, load, database, random);
    await fleet.settle();
    const answers = await load.end();
    assert.deepEqual(fleet.fallen(), [], 'servers ended though nobody killed them');

    const deadlocks = assertWasHit(postgres.log().slice(logBytes), kills);
    const books = await readBooks(postgres, database, ledgerPath, teams);
    assert.deepEqual(books.faults.slice(0, 10), [], `${books.faults.length} faults, seed ${seed}`);
    const statuses = Object.keys(answers).filter((status) => /^\d+$/.test(status));
    assert.deepEqual(statuses, ['201', '503'], JSON.stringify(answers));
    await assertAllAgree(fleet, database, teams, books.stored);
    t.diagnostic(
      `killed: ${kills.server} servers, ${kills.connections} connections, ${kills.backend} backends, ` +
        `${kills.postgres} times all of PostgreSQL; ${books.requests} requests, ${books.acknowledged} acknowledged, ` +
        `${books.stored} traces, 0 lost, 0 twice, ${deadlocks} deadlocks; refused ${books.refused}, stored without ` +
        `an answer ${books.storedUnanswered}; with a key: sent again ${answers['sentAgain']}, replayed ${books.replays}`,
    );
    assert.ok(books.replays > 0, 'no retry met what another server had stored');
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

/** Blows of every kind in a random order at random moments, many of them while the fleet has not yet recovered from the last. */
async function makeMayhem(
  fleet: Fleet,
  load: FleetLoad,
  database: string,
  random: () => number,
): Promise<Kills> {
  const done: Kills = { server: 0, connections: 0, backend: 0, postgres: 0 };
  const { cutConnections, killBackend, killAll } = openPostgresKills(postgres, database);
  const killServer = async (): Promise<void> => {
    await eventually('a server to kill', 60_000, async () => fleet.killOne(random) || null);
    done.server += 1;
  };
  const blows = {
    server: killServer,
    connections: async () => void (done.connections += await cutConnections()),
    async backend() {
      await killBackend();
      done.backend += 1;
    },
    async postgres() {
      const restarted = killAll(random() * 300);
      // Servers die while their database is away, too.
      if (random() < 0.5) await killServer();
      await restarted;
      done.postgres += 1;
    },
  };
  for (let round = 0; round < rounds(2); round++) {
    const order = shuffled(random, [...Object.values(blows), blows.connections, blows.server]);
    for (const strike of order) {
      const before = load.acknowledged();
      const isAtWork = async () => load.acknowledged() - before >= acknowledgedBetween || null;
      await eventually('the servers at work', 60_000, isAtWork, 10);
      await sleep(random() * 300);
      await strike();
    }
  }
  return done;
}

/** PostgreSQL's own word that it was hit, and that it never had to break a deadlock. */
function assertWasHit(log: string, kills: Kills): number {
  const logged = (words: RegExp): number => log.match(words)?.length ?? 0;
  assert.ok(logged(/terminating connection due to administrator command/g) > 0);
  assert.ok(logged(/was terminated by signal 9/g) >= kills.backend);
  assert.ok(logged(/database system was interrupted/g) >= kills.backend + kills.postgres);
  const deadlocks = logged(/deadlock detected/g);
  assert.equal(deadlocks, 0, log);
  return deadlocks;
}

/** `verify` recounts everything; and what is stored, each server shows. */
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
