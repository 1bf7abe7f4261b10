import { addMeasures, decodeMeasures, encodeMeasures, noMeasures } from '../../core/measures.ts';
import type { Tally } from '../../core/query.ts';
import type { CountedTrace } from '../../core/rollup.ts';
import type { TallySheet } from '../../core/tally-sheet.ts';
import { Failure } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { metadataText } from '../payload.ts';
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

/**
 * The groups of a tail as parameters of `groupsOf`. A long tail is added up in parts, which take much less memory once they are
 * encoded, and a group may be in several of them. Throws `TailTooLong` if there are too many.
 */
export class TailParts {
  readonly #newSheet: () => TallySheet;
  #sheet: TallySheet;
  #rows = 0;
  #bytes = 0;
  readonly #keys: (string | null)[] = [];
  readonly #areErrors: boolean[] = [];
  readonly #calls: number[] = [];
  readonly #sums: Uint8Array[] = [];

  constructor(newSheet: () => TallySheet) {
    this.#newSheet = newSheet;
    this.#sheet = newSheet();
  }

  add(trace: CountedTrace): void {
    this.#sheet.addTrace(trace);
    this.#rows += 1;
    if (this.#rows % limits.tailPartRows === 0) this.#encode();
  }

  take(): GroupParts {
    this.#encode();
    return {
      keys: this.#keys,
      areErrors: this.#areErrors,
      calls: this.#calls,
      sums: this.#sums,
    };
  }

  #encode(): void {
    for (const { group, measures } of this.#sheet.tallies()) {
      const [key = null, status] = group;
      const sums = encodeMeasures(measures);
      this.#keys.push(key);
      this.#areErrors.push(status === 'error');
      this.#calls.push(measures.calls);
      this.#sums.push(sums);
      this.#bytes += sums.length + Buffer.byteLength(key ?? '');
    }
    if (this.#bytes > limits.postgresTailBytesMax) throw new TailTooLong();
    this.#sheet = this.#newSheet();
  }
}

/** The traces that are not rolled up yet have too many groups for memory. */
export class TailTooLong extends Failure {
  constructor() {
    super('reads_busy', {
      say: 'Many new traces of this team are still being added up. Try again in a moment.',
    });
  }
}

/** The metadata of a row of `tracesOf`, as JSON. */
export function metadataOfRow(row: Row): string | null {
  return metadataText(row['metadata'] as Buffer | null, row['zstd_mask'] as number | null);
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
