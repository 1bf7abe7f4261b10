import { addMeasures, decodeMeasures, encodeMeasures, noMeasures } from '../../core/measures.ts';
import type { Tally } from '../../core/query.ts';
import type { TallySheet } from '../../core/tally-sheet.ts';
import { rollupFromRow } from '../rollup-rows.ts';
import type { Row } from './connection.ts';
import { groupFromRow } from './tally-statements.ts';
import type { GroupParts, RollupPlan } from './tally-statements.ts';

/** A row of `groupsOf`: the parts of a group, which are added up here. */
export function tallyFromGroupRow(row: Row): Tally {
  const parts = row['parts'] as Buffer;
  const measures = noMeasures();
  for (let at = 0; at < parts.length;) {
    const isError = parts.readInt32BE(at) === 1;
    const calls = Number(parts.readBigInt64BE(at + 4));
    const end = at + headerBytes + parts.readInt32BE(at + 12);
    const sums = parts.subarray(at + headerBytes, end);
    addMeasures(measures, decodeMeasures(sums, calls, isError));
    at = end;
  }
  return { group: [row['key'] as string | null], startUs: null, measures };
}

const headerBytes = 16;

/** The groups of a tail as parameters of `groupsOf`. */
export function partsOf(sheet: TallySheet): GroupParts {
  const tallies = sheet.tallies();
  return {
    keys: tallies.map(({ group }) => group[0] ?? null),
    areErrors: tallies.map(({ group }) => group[1] === 'error'),
    calls: tallies.map(({ measures }) => measures.calls),
    sums: tallies.map(({ measures }) => encodeMeasures(measures)),
  };
}

/** Adds a row of `rollupsOf` or `answerOf`. */
export function addRollup(sheet: TallySheet, { set }: RollupPlan, row: Row): void {
  const stored = {
    set: set.number,
    grain: row['grain'] as number,
    bucket: Number(row['bucket']),
    hash: noHash,
    calls: Number(row['calls']),
    sums: row['sums'] as Uint8Array,
  };
  sheet.addRollup(rollupFromRow(stored, groupFromRow(row)));
}

/** The group itself is in the row. */
const noHash = new Uint8Array();
