import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { SearchCriteria } from '../../src/core/query.ts';
import { draftTrace } from '../../src/core/trace.ts';
import { openReadingBoth } from '../../src/store/sqlite/rollup-file.ts';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import { prepareSearches } from '../../src/store/sqlite/search-driver.ts';
import type { Store } from '../../src/store/store.ts';
import { lookUpAll } from '../../src/store/trace-lookups.ts';
import { everyTrace, searchTraces } from '../../src/store/trace-search.ts';
import type { FoundSeqs } from '../../src/store/trace-search.ts';
import { temporaryFolder } from '../support/service.ts';

const folder = temporaryFolder();
const path = join(folder.path, 'search.db');
const count = 12_000;
let store: Store;
let teamId: string;

before(async () => {
  store = await openSqliteStore({ path, clock: { kind: 'system' }, role: 'server' });
  teamId = (await store.ensureTeam('search', 1)).team.id;
  for (let at = 0; at < count; at += 1_000) {
    const drafts = Array.from({ length: 1_000 }, (_, i) => {
      const seq = at + i + 1;
      return draftTrace({
        model: seq % 4_000 === 1 ? 'rare' : 'usual',
        status: seq % 100 === 0 ? 'error' : 'success',
        user_identifier: `u${seq % 5}`,
        input: seq % 3_000 === 0 ? 'a needle' : 'hay',
        started_at: new Date(Date.UTC(2026, 0, 1) + seq * 1_000).toISOString(),
      });
    });
    await store.append([{ teamId, drafts }]);
  }
});
after(async () => {
  await store.close();
  folder.remove();
});

interface Search extends Partial<SearchCriteria> {
  beforeSeq?: number | null;
  msMax?: number;
  rowsMax?: number;
}

async function search({ beforeSeq = null, msMax = 60_000, rowsMax = 10, ...more }: Search) {
  using db = openReadingBoth(path);
  const criteria = { ...everyTrace, ...more };
  const driver = prepareSearches(db)(teamId, criteria) ?? assert.fail('there is no such team');
  return await searchTraces(driver, criteria, { beforeSeq, rowsMax, msMax });
}

/** Searches that have no time at all, one after the other. */
async function inSteps(more: Search): Promise<{ seqs: number[]; steps: number }> {
  const seqs: number[] = [];
  let beforeSeq: number | null = null;
  for (let steps = 1; ; steps++) {
    const found: FoundSeqs = await search({ ...more, beforeSeq, msMax: -1 });
    seqs.push(...found.seqs);
    if (found.next === null) return { seqs, steps };
    assert.ok(found.next.seq < (beforeSeq ?? Infinity), 'each step gets further');
    assert.ok(found.next.createdAtUs > 0);
    beforeSeq = found.next.seq;
  }
}

describe('a search that is out of time continues where it ended, and finds the same', () => {
  const rows: [what: string, criteria: Partial<SearchCriteria>, expected: number[]][] = [
    ['by a field without an index', { filter: { model: ['rare'] } }, [8_001, 4_001, 1]],
    ['by text', { text: 'needle' }, [12_000, 9_000, 6_000, 3_000]],
    [
      'by status and text',
      { filter: { status: ['error'] }, text: 'needle' },
      [12_000, 9_000, 6_000, 3_000],
    ],
    [
      'by user and text',
      { filter: { user_identifier: ['u0', 'u1'] }, text: 'needle' },
      [12_000, 9_000, 6_000, 3_000],
    ],
    [
      'by time and text',
      {
        range: { fromUs: Date.UTC(2026, 0, 1, 1) * 1000, toUs: Date.UTC(2026, 0, 1, 3) * 1000 },
        text: 'needle',
      },
      [9_000, 6_000],
    ],
    ['for nothing', { filter: { model: ['none'] } }, []],
  ];
  for (const [what, criteria, expected] of rows) {
    test(what, async () => {
      const whole = await search(criteria);
      assert.deepEqual(whole, { seqs: expected, next: null });
      const { seqs, steps } = await inSteps(criteria);
      assert.deepEqual(seqs, expected);
      assert.ok(steps > 1, `${steps} steps`);
    });
  }
});

test('a full page says where the next one begins', async () => {
  const { seqs, next } = await search({ text: 'needle', rowsMax: 2 });
  assert.deepEqual([seqs, next?.seq], [[12_000, 9_000], 9_000]);
  const last = await search({ text: 'needle', rowsMax: 2, beforeSeq: 9_000 });
  assert.deepEqual(last, { seqs: [6_000, 3_000], next: null });
});

test('the traces of several values come newest first, each once', async () => {
  using db = openReadingBoth(path);
  const driver = prepareSearches(db)(teamId, everyTrace) ?? assert.fail();
  const found: number[] = [];
  const lookUp = (value: string, beforeSeq: number) =>
    driver.lookUp('user_identifier', value, beforeSeq);
  for await (const seqs of lookUpAll(['u1', 'none', 'u3'], 11_990, lookUp)) found.push(...seqs);
  const all = Array.from({ length: count }, (_, i) => count - i);
  assert.deepEqual(
    found,
    all.filter((seq) => seq < 11_990 && (seq % 5 === 1 || seq % 5 === 3)),
  );
});
