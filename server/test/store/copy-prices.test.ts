import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { RepriceResult } from '../../src/core/reprice.ts';
import { draftTrace } from '../../src/core/trace.ts';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import type { RepriceRun } from '../../src/store/repricer.ts';
import type { Store } from '../../src/store/store.ts';
import { copyStore } from '../../src/tools/copy-store.ts';
import { temporaryFolder } from '../support/service.ts';

const rates = { input: 1, output: 2, cacheRead: null, cacheWrite: 3, reasoning: null };
const price = { teamId: null, model: 'm', fromDay: 0, rates, setAtUs: 5, setBy: 'operator' };

function copyAll(from: Store, to: Store) {
  const options = { clock: () => 1, follow: false, onProgress() {}, onCaughtUp() {} };
  return copyStore(from, to, options);
}

function runOf(teamId: string, id: string): RepriceRun {
  return {
    id,
    teamId,
    startedAtUs: 7,
    finishedAtUs: 8,
    runBy: 'operator',
    request: {
      from: '2026-01-01',
      to: null,
      model: null,
      onlyUncosted: true,
      includeClient: false,
    },
    filter: { fromUs: 0, toUs: null, model: null, scope: 'uncosted' },
    doneSeq: 1,
    lastSeq: 1,
    result: new RepriceResult(9),
  };
}

test('a copy has the prices and the record of changed costs, and is refused if costs have changed meanwhile', async (t) => {
  const folder = temporaryFolder();
  t.after(() => folder.remove());
  const open = (name: string) =>
    openSqliteStore({ path: join(folder.path, name), clock: { kind: 'system' }, role: 'tool' });
  const [from, to] = [await open('from.db'), await open('to.db')];
  t.after(async () => {
    await from.close();
    await to.close();
  });
  const { team } = await from.ensureTeam('priced', 1);
  const draft = { ...draftTrace({ model: 'm', cost_usd: 1 }), cost_source: 'computed' as const };
  await from.append([{ teamId: team.id, drafts: [draft] }]);
  await from.setPrice(price);
  await from.setPrice({ ...price, teamId: team.id, fromDay: 20_000 });
  const first = runOf(team.id, '00000000-0000-7000-8000-000000000001');
  await from.addRepriceRun(first);

  await copyAll(from, to);
  const shown = async (store: Store) =>
    (await store.priceEntries()).map((entry) => ({ ...entry, no: 0 }));
  assert.deepEqual(await shown(to), await shown(from));
  assert.deepEqual(await to.repriceRuns(team.id), [first]);
  const [trace] = await to.range(team.id, { firstSeq: 1, count: 1 });
  assert.deepEqual([trace?.cost_usd, trace?.cost_source], [1, 'computed']);

  // Prices follow in a second copy, also those that were removed.
  await from.setPrice({ ...price, rates: null });
  await copyAll(from, to);
  assert.equal((await shown(to)).filter((entry) => entry.rates !== null).length, 1);

  await from.addRepriceRun(runOf(team.id, '00000000-0000-7000-8000-000000000002'));
  await assert.rejects(copyAll(from, to), /Costs of the team "priced" have changed in the source/);
});
