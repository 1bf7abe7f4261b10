import { encodeMeasures } from '../../core/encoded-measures.ts';
import { MeasuresSum } from '../../core/measures-sum.ts';
import type { QueryField, Tally, TallyQuery } from '../../core/query.ts';
import type { CountedTrace } from '../../core/rollup.ts';
import type { TallySheet } from '../../core/tally-sheet.ts';
import { Failure } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { metadataText } from '../payload.ts';
import type { Row } from './connection.ts';
import type { GroupParts } from './tally-statements.ts';

/** A row of `groupsOf`: the parts of a group, which are added up here. */
export function tallyFromGroupRow(row: Row): Tally {
  const parts = row['parts'] as Buffer;
  const sum = new MeasuresSum();
  for (let at = 0; at < parts.length;) {
    const sumsAt = at + headerBytes;
    const latenciesAt = sumsAt + parts.readInt32BE(at + 12);
    const end = latenciesAt + parts.readInt32BE(at + 16);
    sum.addEncoded({
      calls: Number(parts.readBigInt64BE(at + 4)),
      isError: parts.readInt32BE(at) === 1,
      sums: parts.subarray(sumsAt, latenciesAt),
      latencies: parts.subarray(latenciesAt, end),
    });
    at = end;
  }
  return { group: [row['key'] as string | null], startUs: null, measures: sum.measures() };
}

const headerBytes = 20;

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
  readonly #latencies: Uint8Array[] = [];

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
      latencies: this.#latencies,
    };
  }

  #encode(): void {
    for (const { group, measures } of this.#sheet.tallies()) {
      const [key = null, status] = group;
      const { sums, latencies } = encodeMeasures(measures);
      this.#keys.push(key);
      this.#areErrors.push(status === 'error');
      this.#calls.push(measures.calls);
      this.#sums.push(sums);
      this.#latencies.push(latencies);
      this.#bytes += sums.length + latencies.length + Buffer.byteLength(key ?? '');
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

/** Adds a row of `rollupsOf` or `answerOf`, which has passed the filter. */
export function addRollup(sheet: TallySheet, { groupBy }: TallyQuery, row: Row): void {
  const isError = row['is_error'] === true;
  const valueOf = (field: QueryField): string | null =>
    field === 'status' ? (isError ? 'error' : 'success') : (row[field] as string | null);
  sheet.addStored({
    grain: row['grain'] as number,
    bucket: Number(row['bucket']),
    group: groupBy.map(valueOf),
    calls: Number(row['calls']),
    isError,
    sums: row['sums'] as Uint8Array,
    latencies: (row['latencies'] as Uint8Array | undefined) ?? null,
  });
}
