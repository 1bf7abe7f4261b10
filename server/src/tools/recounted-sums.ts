import { DatabaseSync } from 'node:sqlite';
import type { Group, RollupId } from '../core/rollup.ts';
import { OperatorError, messageOf } from '../errors.ts';
import { addedTo } from '../store/rollup-rows.ts';
import type { RollupDelta, RollupRow, StoredSums } from '../store/rollup-rows.ts';

type RowId = Pick<RollupRow, 'set' | 'grain' | 'bucket' | 'hash'>;

/** Sums that were added up from traces, by the rollup that should contain them. */
export interface RecountedSums {
  /** Returns the sums of a rollup, and forgets them. */
  take(id: RowId): StoredSums | undefined;
  /** The rollups that were not taken. */
  rest(): Iterable<RollupId>;
}

export class SumsInMemory implements RecountedSums {
  readonly #deltas: Map<string, RollupDelta>;

  constructor(deltas: readonly RollupDelta[]) {
    this.#deltas = new Map(deltas.map((delta) => [keyOf(delta), delta]));
  }

  take(id: RowId): StoredSums | undefined {
    const key = keyOf(id);
    const delta = this.#deltas.get(key);
    if (!delta) return undefined;
    this.#deltas.delete(key);
    return addedTo(undefined, delta);
  }

  rest(): Iterable<RollupId> {
    return this.#deltas.values();
  }
}

function keyOf({ set, grain, bucket, hash }: RowId): string {
  const bytes = Buffer.from(hash.buffer, hash.byteOffset, hash.byteLength);
  return `${set} ${grain} ${bucket} ${bytes.toString('latin1')}`;
}

/** In a temporary file of SQLite, which is removed when it is closed, even if the process is killed. */
export class SumsFile implements RecountedSums, Disposable {
  readonly #db = new DatabaseSync('');
  readonly #statements = prepare(this.#db);

  [Symbol.dispose](): void {
    this.#db.close();
  }

  add(deltas: readonly RollupDelta[]): void {
    const { find, put, putGroup } = this.#statements;
    try {
      for (const delta of deltas) {
        const { set, grain, bucket, hash, group } = delta;
        const row = addedTo(find.get(set, grain, bucket, hash) as StoredSums | undefined, delta);
        put.run(set, grain, bucket, hash, row.calls, row.sums, row.latencies);
        putGroup.run(hash, JSON.stringify(group));
      }
    } catch (error) {
      throw new OperatorError(`Cannot write a temporary file: ${messageOf(error)}.`, {
        cause: error,
      });
    }
  }

  take({ set, grain, bucket, hash }: RowId): StoredSums | undefined {
    return this.#statements.take.get(set, grain, bucket, hash) as StoredSums | undefined;
  }

  *rest(): Iterable<RollupId> {
    for (const row of this.#statements.rest.iterate()) {
      const { group, ...id } = row as unknown as RestRow;
      yield { ...id, group: JSON.parse(group) as Group };
    }
  }
}

interface RestRow extends Omit<RollupId, 'group'> {
  group: string;
}

function prepare(db: DatabaseSync) {
  // Nothing survives a crash, so nothing has to be synced or undone.
  db.exec('pragma journal_mode = off; pragma synchronous = off');
  db.exec(`create table rollups (set_no, grain, bucket, hash, calls, sums, latencies,
    primary key (set_no, grain, bucket, hash)) without rowid`);
  db.exec('create table groups (hash primary key, "group") without rowid');
  // One transaction is several times as fast as one per row. It is never committed.
  db.exec('begin');
  const ofKey = 'where set_no = ? and grain = ? and bucket = ? and hash = ?';
  return {
    find: db.prepare(`select calls, sums, latencies from rollups ${ofKey}`),
    put: db.prepare('insert or replace into rollups values (?, ?, ?, ?, ?, ?, ?)'),
    putGroup: db.prepare('insert or ignore into groups values (?, ?)'),
    take: db.prepare(`delete from rollups ${ofKey} returning calls, sums, latencies`),
    rest: db.prepare(
      'select set_no as "set", grain, bucket, "group" from rollups join groups using (hash)',
    ),
  };
}
