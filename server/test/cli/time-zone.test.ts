import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { draftTrace } from '../../src/core/trace.ts';
import { rollupPathOf } from '../../src/store/sqlite/rollup-file.ts';
import { withTool } from '../guarantees/crash-lab.ts';
import { spawnCli } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { chooseSeed, seededRandom } from '../support/seeded-random.ts';
import { runSql } from '../support/store-place.ts';
import { assertRefused, call, startServer, toolInFolder } from './helpers.ts';
import type { NewKeyJson, Tool } from './helpers.ts';

const tool = toolInFolder({ after });

const rebuildChild = fileURLToPath(new URL('../store/rebuild-until-killed.ts', import.meta.url));

interface TeamJson {
  team_id: string;
  team: string;
  time_zone: string;
}

async function zoneOf(on: Tool, team: string): Promise<string | undefined> {
  const teams = await on.json<TeamJson[]>('teams', 'list');
  return teams.find(({ team: name }) => name === team)?.time_zone;
}

describe('the time zone of a team', { concurrency: 2 }, () => {
  test('is the one that it was created with, in its usual spelling, or UTC', async () => {
    const made = await tool.json<TeamJson>(
      'teams',
      'create',
      'nepal',
      '--time-zone=asia/KATHMANDU',
    );
    assert.equal(made.time_zone, 'Asia/Kathmandu');
    assert.equal(await zoneOf(tool, 'nepal'), 'Asia/Kathmandu');
    const plain = await tool.json<TeamJson>('teams', 'create', 'plain');
    assert.equal(plain.time_zone, 'UTC');
    assert.equal(await zoneOf(tool, 'plain'), 'UTC');
    const table = await tool.run('teams', 'list');
    assert.match(table.stdout, /^TEAM +ID +TIME ZONE +TRACES/);
  });

  const refused: [typed: string, says: RegExp][] = [
    ['Europe/Berlim', /^There is no time zone "Europe\/Berlim"\. Did you mean Europe\/Berlin\?\n$/],
    ['berlin', /Did you mean Europe\/Berlin\?\n$/],
    ['new york', /Did you mean America\/New_York\?\n$/],
    ['+01:00', /Use a name from the IANA database, such as Europe\/Berlin or UTC\.\n$/],
    ['', /^There is no time zone ""\. Use a name/],
  ];
  for (const [typed, says] of refused) {
    test(`"${typed}" is refused with a hint, and nothing is created`, async (t) => {
      const nowhere = toolInFolder(t);
      assertRefused(await nowhere.run('teams', 'create', 'x', `--time-zone=${typed}`), 1, says);
      assert.ok(!existsSync(nowhere.path));
    });
  }

  test('teams set refuses an unknown team and a missing zone', async () => {
    await tool.json('teams', 'create', 'known');
    const zone = ['--time-zone', 'UTC'];
    assertRefused(
      await tool.run('teams', 'set', 'nobody', ...zone),
      1,
      /There is no team "nobody"/,
    );
    assertRefused(await tool.run('teams', 'set', 'known'), 1, /^--time-zone is missing\./);
  });

  test('teams set changes the days of a running server, and its sums stay right', async (t) => {
    const own = toolInFolder(t);
    const server = await startServer(t, own);
    const { key, team_id } = await own.json<NewKeyJson>('keys', 'create', '--team', 'moving');
    // Today at noon in UTC, which is tomorrow on Kiritimati.
    const noonUs = Math.floor(Date.now() / 86_400_000) * 86_400_000_000 + 12 * 3_600_000_000;
    const drafts = Array.from({ length: 50 }, () => ({
      ...draftTrace({ model: 'm', cost_usd: 0.01 }),
      started_at: noonUs,
    }));
    await withTool(own.path, (store) => store.append([{ teamId: team_id, drafts }]));
    const daysOf = async (): Promise<Record<string, number>> => {
      const { body } = await call<{ date: string; call_count: number }[]>(
        `${server.url}/analytics/daily`,
        key,
      );
      assert.equal(body.length, 7);
      return Object.fromEntries(body.map(({ date, call_count }) => [date, call_count]));
    };
    const dayIn = (timeZone: string): string =>
      Temporal.Instant.fromEpochMilliseconds(noonUs / 1000)
        .toZonedDateTimeISO(timeZone)
        .toPlainDate()
        .toString();
    assert.equal((await daysOf())[dayIn('UTC')], 50);

    const set = await own.run('teams', 'set', 'moving', '--time-zone', 'Pacific/Kiritimati');
    assert.deepEqual(set, {
      code: 0,
      stdout: 'The team "moving" now has the time zone Pacific/Kiritimati.\n',
      stderr: '',
    });
    // In the first ten hours of a UTC day, that day is not over on Kiritimati and the next one is not in its last seven days.
    const todayThere = (): string => Temporal.Now.plainDateISO('Pacific/Kiritimati').toString();
    const before = todayThere();
    const days = await daysOf();
    const today = Object.keys(days).at(-1) ?? '';
    // A day may begin in between.
    assert.ok([before, todayThere()].includes(today), today);
    assert.equal(days[dayIn('UTC')] ?? 0, 0);
    if (dayIn('Pacific/Kiritimati') <= today) assert.equal(days[dayIn('Pacific/Kiritimati')], 50);
    assert.equal(await zoneOf(own, 'moving'), 'Pacific/Kiritimati');
    assert.equal((await own.run('verify')).code, 0);
    const again = await own.run('teams', 'set', 'moving', '--time-zone', 'pacific/kiritimati');
    assert.match(again.stdout, /^The team "moving" already has the time zone/);
  });

  test('teams set for the present time zone removes the sums that a killed run has left', async (t) => {
    const own = toolInFolder(t);
    const { team_id } = await own.json<TeamJson>('teams', 'create', 'left');
    const drafts = Array.from({ length: 2_000 }, (_, i) =>
      draftTrace({ model: 'm', user_identifier: `u${i}` }),
    );
    await withTool(own.path, async (store) => {
      await store.append([{ teamId: team_id, drafts }]);
      await store.roll(team_id, 2_000);
    });
    const args = [rebuildChild, own.database, team_id, 'Asia/Tokyo', 'switched'];
    const killed = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 60_000 });
    assert.equal(killed.signal, 'SIGKILL', killed.stderr);
    const generations = () =>
      runSql(
        { kind: 'sqlite', path: rollupPathOf(own.path) },
        'select distinct generation from rollups',
      );
    assert.equal((await generations()).length, 2, 'the old sums are not there');
    const set = await own.run('teams', 'set', 'left', '--time-zone', 'Asia/Tokyo');
    assert.match(set.stdout, /^The team "left" already has the time zone Asia\/Tokyo\./);
    assert.equal((await generations()).length, 1);
  });

  test('teams set that is killed at any moment leaves the old days or the new ones, and works when it is run again', async (t) => {
    const seed = chooseSeed();
    const random = seededRandom(seed);
    t.diagnostic(`seed ${seed}`);
    const own = toolInFolder(t);
    await own.json('demo', '--count', '2000', '--days', '10', '--team', 'big');
    const startMs = performance.now();
    await own.json('teams', 'set', 'big', '--time-zone', 'Asia/Tokyo');
    const tookMs = performance.now() - startMs;
    let longestMs = 0.8 * tookMs;
    let killed = 0;
    for (let round = 1; round <= 2 || (round <= 10 && killed === 0); round++) {
      const zone = round % 2 === 0 ? 'America/New_York' : 'Australia/Lord_Howe';
      const args = ['teams', 'set', 'big', '--time-zone', zone, '--database', own.database];
      const child = spawnCli(args);
      const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
      // The moment is random by design.
      await sleep(random() * longestMs);
      child.kill('SIGKILL');
      if (
        (await eventually('the end', 120_000, async () => ({ code: await ended }))).code === null
      ) {
        killed += 1;
      } else {
        longestMs /= 2;
      }
      const verified = await own.run('verify');
      assert.equal(verified.code, 0, `seed ${seed}: ${verified.stdout}`);
      await own.json('teams', 'set', 'big', '--time-zone', zone);
      assert.equal(await zoneOf(own, 'big'), zone);
      const after = await own.run('verify');
      assert.equal(after.code, 0, `seed ${seed}: ${after.stdout}`);
    }
    assert.ok(killed > 0, 'every run ended before it was killed');
  });
});
