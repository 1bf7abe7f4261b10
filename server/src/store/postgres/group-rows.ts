import { addMeasures, decodeMeasures, noMeasures } from '../../core/measures.ts';
import type { Tally } from '../../core/query.ts';
import type { Row } from './connection.ts';

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
