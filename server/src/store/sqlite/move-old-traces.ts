import type { DatabaseSync } from 'node:sqlite';
import { payloadNames } from '../../core/trace-fields.ts';
import type { PayloadName } from '../../core/trace-fields.ts';
import { limits } from '../../limits.ts';
import { checksumOf, payloadsOfRow } from '../payload.ts';
import type { UpgradeProgress } from '../store.ts';
import { inTransaction, inUnsyncedTransaction } from './connection.ts';
import { openRollupTables } from './rollup-tables.ts';

/**
 * The second part of migration 0005: moves the traces of older versions into the new tables and adds them up. Each step is a short
 * transaction that can be interrupted; what is left to do can be seen from the tables that still exist.
 */
export function moveOldTraces(
  db: DatabaseSync,
  onProgress: (progress: UpgradeProgress) => void = () => {},
): void {
  if (hasTable(db, oldTraces)) {
    moveRows(db, onProgress);
    db.exec(`drop table ${oldTraces}`);
  }
  if (hasTable(db, oldRollups)) {
    addUp(db, onProgress);
    inTransaction(db, () => db.exec(`drop table ${oldRollups}`));
  }
}

export function isMovePending(db: DatabaseSync): boolean {
  return hasTable(db, oldTraces) || hasTable(db, oldRollups);
}

/** The name that migration 0005 gives the old table. */
export const oldTraces = 'traces_old';
const oldRollups = 'rollups';

export function hasTable(db: DatabaseSync, name: string): boolean {
  const read = db.prepare("select 1 from sqlite_schema where type = 'table' and name = ?");
  return read.get(name) !== undefined;
}

/** The columns that two tables have in common. */
function sharedColumns(db: DatabaseSync, table: string, other: string): string[] {
  const theirs = new Set(columnsOf(db, other));
  return columnsOf(db, table).filter((column) => theirs.has(column));
}

function columnsOf(db: DatabaseSync, table: string): string[] {
  const read = db.prepare('select name from pragma_table_info(?) order by cid');
  return read.all(table).map(({ name }) => String(name));
}

/** The payloads that a table of an older version has. */
export function oldPayloads(db: DatabaseSync, table: string): PayloadName[] {
  const columns = columnsOf(db, table);
  return payloadNames.filter((name) => columns.includes(name));
}

function moveRows(db: DatabaseSync, onProgress: (progress: UpgradeProgress) => void): void {
  const payloads = oldPayloads(db, oldTraces);
  db.function('payload_checksum', { deterministic: true, varargs: true }, (mask, ...bytes) => {
    const row = Object.fromEntries(payloads.map((name, i) => [name, bytes[i]]));
    return checksumOf(payloadsOfRow({ zstd_mask: mask, ...row }));
  });
  const storedBytes = payloads.map((name) => `coalesce(length(${name}), 0)`).join(' + ');
  const readKeys = db.prepare(
    `select key, ${storedBytes} as bytes from ${oldTraces} order by key limit ${limits.moveRowsMax}`,
  );
  readKeys.setReadBigInts(true);
  const narrow = sharedColumns(db, oldTraces, 'traces').join(', ');
  const copyNarrow = db.prepare(
    `insert into traces (${narrow}) select ${narrow} from ${oldTraces} where key <= ?`,
  );
  const names = payloads.join(', ');
  const copyPayloads = db.prepare(`
    insert into trace_payloads (key, zstd_mask, checksum, ${names})
    select key, zstd_mask, payload_checksum(zstd_mask, ${names}), ${names} from ${oldTraces}
    where key <= ? and coalesce(${names}) is not null`);
  const remove = db.prepare(`delete from ${oldTraces} where key <= ?`);
  const total = countTraces(db);
  let done = total - Number(db.prepare(`select count(*) as n from ${oldTraces}`).get()?.['n']);
  for (;;) {
    const { lastKey, rows } = nextRows(readKeys.iterate());
    if (lastKey === null) return;
    inUnsyncedTransaction(db, () => {
      for (const statement of [copyNarrow, copyPayloads, remove]) statement.run(lastKey);
    });
    done += rows;
    onProgress({ step: 'moving traces', done, total });
  }
}

/** As many rows as fit into one transaction. */
function nextRows(rows: Iterable<Record<string, unknown>>): {
  lastKey: bigint | null;
  rows: number;
} {
  let lastKey: bigint | null = null;
  let count = 0;
  let bytes = 0n;
  for (const row of rows) {
    lastKey = row['key'] as bigint;
    count += 1;
    bytes += row['bytes'] as bigint;
    if (bytes >= limits.moveBytesMax) break;
  }
  return { lastKey, rows: count };
}

function addUp(db: DatabaseSync, onProgress: (progress: UpgradeProgress) => void): void {
  const tables = openRollupTables(db);
  const teams = db.prepare('select team_no from team_marks where is_active = 1').all();
  // Every trace is added up twice: for the small sets and for the large ones.
  const total = 2 * countTraces(db);
  let done = 0;
  for (const row of teams) {
    const teamNo = row['team_no'] as number;
    for (const speed of ['hot', 'wide'] as const) {
      for (let rows = -1; rows !== 0;) {
        rows = inUnsyncedTransaction(db, () => {
          const marks = tables.marks(teamNo);
          return marks ? tables.roll(teamNo, marks, speed, limits.rollRowsMax) : 0;
        });
        done += rows;
        if (rows > 0) onProgress({ step: 'adding up', done, total });
      }
    }
  }
}

function countTraces(db: DatabaseSync): number {
  const read = db.prepare(
    'select coalesce(sum(last_seq - first_seq + 1), 0) as n from team_counters',
  );
  return Number(read.get()?.['n']);
}
