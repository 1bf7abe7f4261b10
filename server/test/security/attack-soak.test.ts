import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { attackNames } from '../../scripts/attack-soak/attack-names.ts';
import { checkStore } from '../../scripts/attack-soak/store-check.ts';
import { openRequestLog, readRequestLog } from '../support/request-log.ts';
import { failuresOf, finalReport } from '../../scripts/attack-soak/report.ts';
import type { SoakResult } from '../../scripts/attack-soak/report.ts';
import { startTestService, temporaryFolder } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

const probes = { probes: 100, late: 0, slowestMs: 20, recentMs: 20 };

/** A run in which everything went well. */
const sound: SoakResult = {
  minutes: 1,
  ranS: 60,
  store: 'sqlite',
  seed: 7,
  memoryLimit: '1 GiB',
  memoryLimitBytes: 1024 ** 3,
  isMemoryWatched: false,
  unexpectedEnd: null,
  outOfMemoryKills: 0,
  cgroupPeakBytes: 5e8,
  logStalls: 1,
  watch: { fresh: probes, kept: probes, residentBytes: 1e8, peakResidentBytes: 2e8 },
  honest: {
    requests: 3000,
    serverErrors: 5,
    noAnswers: 5,
    slowestMs: 20,
    operations: 2000,
    failed: 1,
    acknowledged: 500,
    stale: 0,
    reasons: {},
  },
  attacks: {
    waves: Object.fromEntries(attackNames.map((name) => [name, 1])),
    requests: 1000,
    answers: {},
    answered: Object.fromEntries(attackNames.map((name) => [name, 1])),
    mistakes: {},
  },
  contents: { acknowledged: 500, stored: 500, lost: [], twice: [], miscounted: 0 },
  verify: { code: 0, text: 'Everything adds up.' },
  mistakes: [],
};

describe('the attack soak passes only if all of this holds', () => {
  test('a sound run passes', () => {
    assert.deepEqual(failuresOf(sound), []);
    assert.match(finalReport(sound), /\nPASSED\n/);
  });

  const { contents, honest, attacks, watch } = sound;
  assert.ok(contents && honest && attacks);
  const broken: Record<string, Partial<SoakResult>> = {
    'the service ran under one process id': { unexpectedEnd: 'SIGKILL' },
    'no acknowledged trace is lost': { contents: { ...contents, lost: ['id'] } },
    'no trace is stored twice': { contents: { ...contents, twice: ['name'] } },
    'every team is counted right': { contents: { ...contents, miscounted: 1 } },
    'the store was checked': { contents: null },
    'less than 0.1 % of honest operations failed': { honest: { ...honest, failed: 2 } },
    'no read missed an acknowledged trace': { honest: { ...honest, stale: 1 } },
    'honest clients stored something': { honest: { ...honest, acknowledged: 0 } },
    'the honest clients reported': { honest: null },
    'every attack took place': {
      attacks: { ...attacks, waves: { ...attacks.waves, overload: 0 } },
    },
    'every attack that reads answers got some': {
      attacks: { ...attacks, answered: { ...attacks.answered, garbage: 0 } },
    },
    'the attacker made no mistake': { attacks: { ...attacks, mistakes: { 'garbage: oops': 1 } } },
    'the log pipe was left unread': { logStalls: 0 },
    'verify is clean': { verify: { code: 1, text: '1 difference.' } },
    'verify ran': { verify: null },
    'a limit that is only watched was kept': {
      isMemoryWatched: true,
      watch: { ...watch, peakResidentBytes: 1024 ** 3 + 1 },
    },
    'the soak itself did not fail': { mistakes: ['interrupted'] },
  };
  for (const [what, change] of Object.entries(broken)) {
    test(what, () => {
      const result = { ...sound, ...change };
      assert.equal(failuresOf(result).length, 1);
      assert.match(finalReport(result), /\nFAILED\n/);
    });
  }
});

describe('the store check of the attack soak', () => {
  let service: TestService;
  before(async () => {
    service = await startTestService();
  });
  after(() => service.stop());

  test('finds what is lost and what is stored twice, in any team and on any page', async () => {
    const folder = temporaryFolder();
    try {
      const teams = [await service.keyFor(), await service.keyFor()];
      const logPath = join(folder.path, 'requests.log');
      const log = openRequestLog(logPath);
      for (const [team, { key }] of teams.entries()) {
        const traces = Array.from({ length: 150 }, (_, i) => ({
          model: 'm',
          user_identifier: `team${team}-client0-1/${i}`,
        }));
        const { json } = await service.call(key, 'POST', '/traces/batch', { traces });
        const stored = json.traces as { id: string }[];
        const ids = stored.map(({ id }) => id);
        log.acknowledged(team, `team${team}-client0-1`, ids);
      }
      const check = (): ReturnType<typeof checkStore> =>
        checkStore(service.url, teams, readRequestLog(logPath));
      const kept = { acknowledged: 300, stored: 300, lost: [], twice: [], miscounted: 0 };
      assert.deepEqual(await check(), kept);

      const lost = '00000000-0000-7000-8000-000000000000';
      log.acknowledged(1, 'team1-client0-2', [lost]);
      const again = { model: 'm', user_identifier: 'team0-client0-1/3' };
      assert.equal((await service.call(teams[0]?.key ?? '', 'POST', '/traces', again)).status, 201);
      log.close();
      assert.deepEqual(await check(), {
        acknowledged: 301,
        stored: 301,
        lost: [lost],
        twice: ['team0-client0-1/3'],
        miscounted: 0,
      });
    } finally {
      folder.remove();
    }
  });
});
