import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { verifyTeam } from '../../src/tools/verify.ts';
import { randomDraft } from '../support/random-drafts.ts';
import { rollUp } from '../support/roll-up.ts';
import { chooseSeed, seededRandom } from '../support/seeded-random.ts';
import { startTestService } from '../support/service.ts';
import type { KeyHolder, TestService } from '../support/service.ts';
import { testStore } from '../support/store-place.ts';
import { assertTallies } from '../support/tally-answers.ts';

let service: TestService;

before(async () => {
  service = await startTestService();
});
after(() => service.stop());

const seed = chooseSeed();
const random = seededRandom(seed);

async function rolledTeam(): Promise<KeyHolder> {
  const holder = await service.keyFor();
  const { teamId } = holder;
  const drafts = Array.from({ length: 200 }, () => randomDraft(random, Date.now() * 1000));
  await service.beside.append([{ teamId, drafts }]);
  await rollUp(service.beside, [teamId]);
  return holder;
}

const rollups = testStore === 'sqlite' ? 'rollups' : 'rollups';
/** On SQLite a mark says which trace it ends with (test/cli/verify-lab.ts). */
const marks =
  testStore === 'sqlite'
    ? {}
    : { 'a mark that is behind its sums': 'update roll_marks set seq = seq - 1' };

const damages = {
  'a wrong number of calls': `update ${rollups} set calls = calls + 1 where set_no = 0`,
  'missing sums': `delete from ${rollups} where set_no = 1 and grain = 1`,
  ...marks,
  'a missing group': 'delete from rollup_groups where set_no = 2',
  'a group with another name': "update rollup_groups set model = 'x' where model = 'haiku'",
};

for (const [what, sql] of Object.entries(damages)) {
  test(`a rebuild corrects ${what}, which verify has found`, async (t) => {
    t.diagnostic(`seed ${seed}`);
    const { teamId } = await rolledTeam();
    const clean = { traces: 200, differences: [] };
    assert.deepEqual(await verifyTeam(service.beside, teamId), clean);
    await service.rollupSql(sql);
    assert.notDeepEqual(await verifyTeam(service.beside, teamId), clean);
    await service.beside.rebuild(teamId, 'Australia/Lord_Howe');
    assert.deepEqual(await verifyTeam(service.beside, teamId), clean);
    assert.equal(await service.beside.timeZone(teamId), 'Australia/Lord_Howe');
    await assertTallies(service.beside, teamId);
  });
}
