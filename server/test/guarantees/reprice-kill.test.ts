import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { toolOn } from '../cli/helpers.ts';
import { spawnCli } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder, totalOf } from '../support/service.ts';
import { withTool } from './crash-lab.ts';

const traces = 2_000;

test('reprice that is killed leaves exact sums, and the same command continues with the rest', async (t) => {
  const folder = temporaryFolder();
  t.after(() => folder.remove());
  const tool = toolOn(join(folder.path, 'killed.db'));
  const teamId = await withTool(tool.path, async (store) => {
    const { team } = await store.ensureTeam('killed', 1);
    const drafts = Array.from({ length: traces }, (_, i) =>
      draftTrace({
        model: 'gpt-4o',
        prompt_tokens: 1_000,
        completion_tokens: 100,
        // Many groups make the transactions small.
        user_identifier: `user-${i}`,
        feature_name: `feature-${i}`,
      }),
    );
    await store.append([{ teamId: team.id, drafts }]);
    return team.id;
  });
  const args = ['reprice', '--from', '2026-01-01'];
  const child = spawnCli([...args, '--database', tool.database]);
  const ended = new Promise((resolve) => child.once('close', resolve));
  const costed = () =>
    withTool(tool.path, async (store) => {
      const { calls, uncosted_calls: uncosted } = await totalOf(store, teamId);
      return calls - uncosted;
    });
  try {
    await eventually('the first changed costs', 120_000, async () => (await costed()) > 0, 1);
  } finally {
    child.kill('SIGKILL');
  }
  await ended;
  const halfway = await costed();
  t.diagnostic(`${halfway} of ${traces} costs were changed before it was killed`);
  await withTool(tool.path, async (store) => {
    assert.deepEqual((await verifyTeam(store, teamId)).differences, []);
    assert.equal((await totalOf(store, teamId)).cost_picos, BigInt(halfway) * 3_500_000_000n);
  });
  const { teams } = await tool.json<{ teams: { traces: number; changed: number }[] }>(...args);
  // The result includes what was done before, if the first process did not come to its end.
  if (halfway < traces) assert.deepEqual([teams[0]?.traces, teams[0]?.changed], [traces, traces]);
  await withTool(tool.path, async (store) => {
    assert.deepEqual((await verifyTeam(store, teamId)).differences, []);
    assert.equal((await totalOf(store, teamId)).cost_picos, BigInt(traces) * 3_500_000_000n);
    const runs = await store.repriceRuns(teamId);
    assert.equal(runs.length, halfway < traces ? 1 : 2);
  });
});
