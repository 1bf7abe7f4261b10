import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import fc from 'fast-check';
import { blockOf, packSeqs, unpackSeqs } from '../../src/store/sqlite/lookup-blocks.ts';
import { openLookupTable } from '../../src/store/sqlite/lookup-table.ts';

const [teamNo, hash, block] = [3, -(2 ** 47), 5];
const firstSeq = block * 2 ** 14;
const someSeqs = fc
  .uniqueArray(fc.integer({ min: firstSeq, max: firstSeq + 2 ** 14 - 1 }), { minLength: 1 })
  .map((seqs) => seqs.sort((a, b) => a - b));

test('sequence numbers of a block are the same after they were packed', () => {
  fc.assert(
    fc.property(someSeqs, (seqs) => {
      assert.ok(seqs.every((seq) => blockOf(seq) === block));
      assert.deepEqual(unpackSeqs({ block, seqs: packSeqs(seqs) }), seqs);
    }),
  );
});

test('lookups that are added in any order, and some of them again, are stored once and in order', () => {
  using db = new DatabaseSync(':memory:');
  db.exec(`create table trace_lookups (team_no integer, block integer, hash integer, seqs blob,
    primary key (team_no, block, hash)) strict, without rowid`);
  const table = openLookupTable(db);
  const read = db.prepare('select seqs from trace_lookups');
  fc.assert(
    fc.property(fc.array(someSeqs, { minLength: 1, maxLength: 5 }), (batches) => {
      db.exec('delete from trace_lookups');
      for (const seqs of batches) table.add(teamNo, [{ block, hash, seqs: packSeqs(seqs) }]);
      const expected = [...new Set(batches.flat())].sort((a, b) => a - b);
      const stored = read.all().map(({ seqs }) => seqs as Uint8Array);
      assert.deepEqual(
        stored.map((seqs) => unpackSeqs({ block, seqs })),
        [expected],
      );
    }),
  );
});
