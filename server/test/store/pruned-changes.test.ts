import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Database } from '../../src/store/open-store.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { changeCosts } from '../support/changed-costs.ts';
import { usePostgres } from '../support/postgres.ts';
import { rollUp } from '../support/roll-up.ts';
import { temporaryFolder, totalOf } from '../support/service.ts';
import { runSql } from '../support/store-place.ts';

const postgres = usePostgres();

const databases: Record<string, (t: TestContext) => Promise<Database>> = {
  SQLite: async (t) => {
    const folder = temporaryFolder();
    t.after(() => folder.remove());
    return { kind: 'sqlite', path: join(folder.path, 'a.db') };
  },
  PostgreSQL: async () => ({ kind: 'postgres', url: await postgres.createDatabase() }),
};

for (const [name, open] of Object.entries(databases)) {
  test(`logged changes on ${name} are removed an hour after they were rolled up, and not before, and answers stay exact`, async (t) => {
    const database = await open(t);
    const options = { clock: { kind: 'system' }, role: 'server', rolling: 'manual' } as const;
    const store = await openStore(database, options);
    t.after(() => store.close());
    const { team } = await store.ensureTeam('t', 1);
    const drafts = Array.from({ length: 10 }, () => draftTrace({ model: 'm', cost_usd: 1 }));
    await store.append([{ teamId: team.id, drafts }]);
    const logged = async (): Promise<number> =>
      Number((await runSql(database, 'select count(*) as n from trace_changes'))[0]?.['n']);
    const change = (dollars: number) => changeCosts(store, team.id, [0, 10], () => dollars);
    const assertExact = async (dollars: number) => {
      const { cost_picos } = await totalOf(store, team.id);
      assert.equal(cost_picos, BigInt(10 * dollars) * 10n ** 12n);
      assert.deepEqual((await verifyTeam(store, team.id)).differences, []);
    };
    await rollUp(store, [team.id]);
    await change(2);
    await assertExact(2);
    await runSql(database, 'update trace_changes set changed_at_us = 1');
    await change(3);
    await assertExact(3);
    assert.equal(await logged(), 40, 'what is not rolled up is kept, however old it is');
    await rollUp(store, [team.id]);
    await change(4);
    assert.ok((await logged()) >= 40 - 20 + 20, 'new changes are kept for an hour');
    await rollUp(store, [team.id]);
    await runSql(database, 'update trace_changes set changed_at_us = 1');
    await change(5);
    await rollUp(store, [team.id]);
    assert.ok((await logged()) <= 41, `${await logged()} are kept`);
    await assertExact(5);
  });
}
