import { limits } from '../../limits.ts';
import { payloadNames } from '../../core/trace-fields.ts';
import type { PayloadName } from '../../core/trace-fields.ts';
import type { LookupField } from '../trace-lookups.ts';
import { lookupBlockBits, lookupFields } from '../trace-lookups.ts';
import {
  payloadColumns as columnsOfPayloads,
  shortColumns as narrowAndId,
  traceColumns as columnsOfTrace,
  addedColumns,
} from '../trace-rows.ts';
import type { ListRequest } from '../trace-reader.ts';

/**
 * The statements on traces; those on rollups are in `rollup-statements.ts`. If a table is distributed by team, each
 * reference to it is restricted by `team_id = $1`, so that the statement runs on one shard. A test parses all statements with
 * PostgreSQL's own parser and checks this.
 */
const traceColumns = `t.seq, ${columnsOfTrace}`;

/**
 * Traces with their payloads, which they may not have. A subquery for each trace: as a plain join, PostgreSQL may read all payloads of the
 * team.
 */
function tracesWith(payloadColumns: string): string {
  return `traces t left join lateral (
      select ${payloadColumns} from trace_payloads where team_id = $1 and seq = t.seq limit 1) as p on true`;
}

const wholeTraces = tracesWith(columnsOfPayloads);

// --- For one team ---

export const replaceRequest = `
    on conflict (team_id, key_hash) do update set
      body_hash = excluded.body_hash, first_seq = excluded.first_seq, count = excluded.count,
      rejected = excluded.rejected, expires_at_us = excluded.expires_at_us`;

/** A plain `select from unnest` would run on the coordinator; joined with the team's counter it runs on the team's shard. */
function insertRecords(table: string, columns: string): string {
  const values = columns.split(', ').map((name) => `u.${name}`);
  return `
    insert into ${table} (team_id, seq, ${columns}) select c.team_id, u.seq, ${values.join(', ')}
    from team_counters c, unnest($2::${table}[]) as u where c.team_id = $1`;
}

const writing = {
  lockCounter: `
    select first_seq, last_seq, last_created_at_us from team_counters where team_id = $1 for update`,

  addCounter: `
    insert into team_counters (team_id, first_seq, last_seq, last_created_at_us)
    values ($1, $2::bigint, $2::bigint - 1, 0) on conflict (team_id) do nothing`,

  insertTraces: insertRecords('traces', `${narrowAndId}, ${addedColumns}`),

  insertPayloads: insertRecords('trace_payloads', columnsOfPayloads),

  moveCounter: `
    update team_counters set last_seq = $2, last_created_at_us = $3 where team_id = $1`,

  takeRequests: `
    insert into idempotency (team_id, key_hash, body_hash, first_seq, count, rejected, expires_at_us)
    select c.team_id, u.* from team_counters c,
      unnest($2::text[], $3::text[], $4::bigint[], $5::integer[], $6::text[], $7::bigint[]) as u
    where c.team_id = $1 ${replaceRequest}`,
};

const reading = {
  readCounter: `
    select first_seq, last_seq, last_created_at_us from team_counters where team_id = $1`,

  readTrace: `select ${traceColumns} from ${wholeTraces} where t.team_id = $1 and id = $2`,

  readNarrow: `select ${narrowAndId} from traces where team_id = $1 and id = $2`,

  readForward: `
    select ${traceColumns} from ${wholeTraces}
    where t.team_id = $1 and t.seq between $2 and $3 order by t.seq`,

  readPacked: readInChunks('asc', payloadNames, limits.moveBytesMax),

  readRequests: `
    select key_hash, body_hash, first_seq, count, rejected, expires_at_us from idempotency
    where team_id = $1 and expires_at_us > $2 and key_hash > $3
    order by key_hash limit ${limits.moveRowsMax}`,

  auditTraces: readInChunks('asc', payloadNames, limits.auditChunkBytes, {
    more: addedColumns.split(', '),
    which: `t.seq > $2 order by t.seq limit ${limits.auditChunkRows}`,
  }),
};

/**
 * Rows between two sequence numbers, until their payloads fill a chunk. The stored length is known without reading a payload, and
 * omitted payloads are not read at all. Payloads can be checked only if all of them are read completely.
 */
function readInChunks(
  order: 'asc' | 'desc',
  payloads: readonly PayloadName[],
  bytesMax: number,
  {
    which = 't.seq between $2 and $3',
    isCut = false,
    place = 'seq',
    more = [],
  }: { which?: string; isCut?: boolean; place?: string; more?: readonly string[] } = {},
) {
  const lengths = payloads.map((name) => `coalesce(octet_length(${name}), 0)`).join(' + ') || '0';
  const isWhole = payloads.length === payloadNames.length && !isCut;
  const stored = ['zstd_mask', ...(isWhole ? ['checksum'] : [])];
  const plain = [narrowAndId, ...more, ...stored];
  const source = tracesWith([...stored, ...payloads].join(', '));
  const read = isCut
    ? [
        ...payloads.map(
          (name) => `substring(${name} from 1 for ${limits.previewStoredBytes}) as ${name}`,
        ),
        `${lengths} as stored_bytes`,
      ]
    : payloads;
  const shown = ['seq', ...plain, ...payloads, ...(isCut ? ['stored_bytes'] : [])].join(', ');
  return `
    select ${shown} from (
      select ${['t.seq', ...plain, ...read].join(', ')}, sum(${lengths}) over (
        order by ${place.replace('seq', 't.seq')} ${order} rows between unbounded preceding and 1 preceding) as bytes_before
      from ${source} where t.team_id = $1 and ${which}) as page
    where coalesce(bytes_before, 0) < ${bytesMax}
    order by ${place} ${order}`;
}

/**
 * The newest traces with a value, one block after the other, as the indexes are ordered. The blocks are those of the sequence numbers
 * from $4 down to $3.
 */
export const lookUpStatements: Readonly<Record<LookupField, string>> = Object.fromEntries(
  lookupFields.map((field) => [
    field,
    `
    select found.seq from generate_series($4::bigint >> ${lookupBlockBits}, $3::bigint >> ${lookupBlockBits}, -1) as block,
      lateral (
        select t.seq from traces t
        where t.team_id = $1 and (t.seq >> ${lookupBlockBits}) = block and t.${field} = $2 and t.seq <= $4
        order by t.seq desc limit ${limits.lookupRowsMax}) as found
    limit ${limits.lookupRowsMax}`,
  ]),
) as Record<LookupField, string>;

export const ofOneTeam = { ...writing, ...reading };

/** One statement for each combination of payloads, whole or shortened. */
function listStatements(order: 'asc' | 'desc', more: object): ReadonlyMap<string, string> {
  return new Map(
    combinationsOf(payloadNames).flatMap((payloads) =>
      [false, true].map((isCut) => [
        listName(payloads, isCut),
        readInChunks(order, payloads, limits.pageChunkBytesMax, { ...more, isCut }),
      ]),
    ),
  );
}

/** Traces between two sequence numbers, newest first. */
export const readDownStatements = listStatements('desc', {});

/** The traces with the sequence numbers $2, in their order. */
export const readChosenStatements = listStatements('asc', {
  which: 't.seq = any($2::bigint[])',
  place: 'array_position($2::bigint[], seq)',
});

function listName(payloads: readonly PayloadName[], isCut: boolean): string {
  return `${payloads.join()}${isCut ? ' cut' : ''}`;
}

/** The one of the statements that reads what a list shows. */
export function listStatement(
  statements: ReadonlyMap<string, string>,
  { omit, previewChars = null }: ListRequest,
): string {
  const payloads = payloadNames.filter((name) => !omit.has(name));
  const name = listName(payloads, previewChars !== null);
  const statement = statements.get(name);
  if (statement === undefined) throw new Error(`no statement reads the payloads "${name}"`);
  return statement;
}

/** Every subset of the names, in their order. */
function combinationsOf<T>(names: readonly T[]): T[][] {
  return names.reduce<T[][]>(
    (before, name) => [...before, ...before.map((some) => [...some, name])],
    [[]],
  );
}

// --- For all teams: used by commands and at startup, never by a request ---

export const overAllTeams = {
  findOrphans: `
    select o.team_id from (select distinct team_id from traces union select distinct team_id from rollups) as o
    where o.team_id not in (select id from teams)`,
  // Teams with traces that are not rolled up, for example because a server was killed; the longest tails first.
  findTails: `
    select c.team_id, c.last_seq, coalesce(n.last_change_no, 0) as last_change_no, m.generation, m.time_zone, m.seq, m.change_no
    from team_counters c join roll_marks m on m.team_id = c.team_id
      left join change_counters n on n.team_id = c.team_id
    where m.is_active and (m.seq < c.last_seq or m.change_no < n.last_change_no)
    order by c.last_seq - m.seq desc
    limit ${limits.rollSweepTeamsMax}`,
};
