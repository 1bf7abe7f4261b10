import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import type { TallyQuery } from '../../src/core/query.ts';
import { openReading } from '../../src/store/sqlite/connection.ts';
import {
  listQuestion,
  openGroupList,
  prepareGroupLists,
} from '../../src/store/sqlite/group-list.ts';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import { TallyReader } from '../../src/store/sqlite/tally-reader.ts';
import { temporaryFolder } from '../support/service.ts';

const byModel: TallyQuery = { filter: {}, groupBy: ['model'], range: null, interval: null };

test('a list that fails because temporary space is full leaves nothing for the next list', async () => {
  const folder = temporaryFolder();
  const path = join(folder.path, 'lists.db');
  const store = await openSqliteStore({
    path,
    clock: { kind: 'system' },
    role: 'server',
    rolling: 'manual',
  });
  const db = openReading(path);
  try {
    const teamWith = async (name: string, models: number): Promise<string> => {
      const { team } = await store.ensureTeam(name, 1);
      const drafts = Array.from({ length: models }, (_, i) =>
        draftTrace({ model: `${name} ${i}` }),
      );
      await store.append([{ teamId: team.id, drafts }]);
      return team.id;
    };
    const large = await teamWith('large', 1_500);
    const small = await teamWith('small', 2);
    prepareGroupLists(db);
    const reader = new TallyReader(db);
    let lists = 0;
    const namesOf = (teamId: string): unknown[] => {
      const list = reader.withPlan(teamId, byModel, (team, plan, calendar) => {
        const question = listQuestion(byModel, plan);
        assert.ok(question);
        return openGroupList(db, reader, team, question, calendar, `list_${++lists}`);
      });
      assert.ok(list);
      const names = [];
      for (let chunk = list.next(); chunk.length > 0; chunk = list.next()) {
        names.push(...chunk.map(({ group }) => group[0]));
      }
      list.close();
      return names;
    };
    const pages = Number(db.prepare('pragma temp.page_count').get()?.['page_count']);
    db.exec(`pragma temp.max_page_count = ${pages + 20}`);
    assert.throws(() => namesOf(large), /full/);
    db.exec('pragma temp.max_page_count = 1000000');
    assert.deepEqual(namesOf(small), ['small 0', 'small 1']);
    assert.equal(namesOf(large).length, 1_500);
  } finally {
    db.close();
    await store.close();
    folder.remove();
  }
});
