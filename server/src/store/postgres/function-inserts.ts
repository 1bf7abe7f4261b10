import { addedColumns, payloadColumns, shortColumns } from '../trace-rows.ts';
import { replaceRequest } from './statements.ts';

/**
 * The inserts of the function that stores traces. Rows arrive as records of the tables' own types. In place of its sequence number, a
 * record `u` has the number of its write and its index in the write (`placeInCall`), and in place of its time the given one, or 0.
 */
export interface FunctionInserts {
  requests: string;
  traces: string;
  payloads: string;
}

/** The bits of a sequence number that hold the index. */
const indexBits = 32;

/** Sent in place of a sequence number. Writes are counted from one. */
export function placeInCall(writeNo: number, index: number): number {
  return writeNo * 2 ** indexBits + index;
}

const writeNo = `(u.seq >> ${indexBits})::integer`;
const index = `(u.seq & ${2 ** indexBits - 1})`;
const seq = `first_seqs[${writeNo}] + ${index}`;
const createdAtUs = `greatest(u.created_at_us, first_times[${writeNo}] + ${index})`;

/**
 * A version 7 UUID (RFC 9562) of this microsecond, with the random bits of `u.id`: the same as `uuidV7Bytes` makes. Its first 16 digits are
 * the millisecond, the version and the fraction of the millisecond.
 */
function idAt(us: string): string {
  const time = `((${us}) / 1000 << 16) | ${0x7000} | (((${us}) % 1000) * 4096 / 1000)`;
  return `(lpad(to_hex(${time}), 16, '0') || substr(u.id::text, 20))::uuid`;
}

const assigned: Readonly<Record<string, string>> = {
  seq,
  created_at_us: createdAtUs,
  id: idAt(createdAtUs),
};

const requestValues: Readonly<Record<string, string>> = {
  // The ids of calls have no traces.
  first_seq: 'case when u.count > 0 then first_seqs[u.first_seq] else 0 end',
  expires_at_us: 'us + life_us',
};

const columnsOf = {
  idempotency: 'team_id, key_hash, body_hash, first_seq, count, rejected, expires_at_us',
  traces: `team_id, seq, ${shortColumns}, ${addedColumns}`,
  trace_payloads: `team_id, seq, ${payloadColumns}`,
} as const;

type Table = keyof typeof columnsOf;

const isStored = { request: 'first_seqs[u.first_seq] > 0', row: `first_seqs[${writeNo}] > 0` };

function valuesOf(table: Table, assigns: Readonly<Record<string, string>> = {}): string {
  const columns = columnsOf[table].split(', ');
  return columns.map((name) => assigns[name] ?? `u.${name}`).join(', ');
}

/** All rows in one statement. */
function insertAll(
  table: Table,
  records: string,
  assigns: Readonly<Record<string, string>>,
  condition: string,
): string {
  return `
  insert into ${table} (${columnsOf[table]})
  select ${valuesOf(table, assigns)} from unnest(${records}) as u where ${condition}`;
}

/** Each row in a statement of its own. */
function insertEach(
  table: Table,
  records: string,
  steps: { assign: string; condition: string; onConflict?: string },
): string {
  return `
  declare
    u ${table};
  begin
    foreach u in array ${records} loop
      if ${steps.condition} then
        ${steps.assign}
        insert into ${table} (${columnsOf[table]}) values (${valuesOf(table)}) ${steps.onConflict ?? ''};
      end if;
    end loop;
  end;`;
}

export const plainInserts: FunctionInserts = {
  requests: `${insertAll('idempotency', 'new_requests', requestValues, isStored.request)} ${replaceRequest};`,
  traces: `${insertAll('traces', 'new_traces', assigned, isStored.row)};`,
  payloads: `${insertAll('trace_payloads', 'new_payloads', { seq }, isStored.row)};`,
};

/** Citus plans each insert of one row quickly. If there are more rows than this, it is faster to copy them to the shards. */
const fewRowsMax = 6;

function insertFewOrAll(records: string, few: string, all: string): string {
  return `
  if cardinality(${records}) > ${fewRowsMax} then ${all}
  else ${few}
  end if;`;
}

export const clusterInserts: FunctionInserts = {
  requests: insertEach('idempotency', 'new_requests', {
    assign: `u.first_seq := ${requestValues['first_seq']}; u.expires_at_us := ${requestValues['expires_at_us']};`,
    condition: isStored.request,
    onConflict: replaceRequest,
  }),
  traces: insertFewOrAll(
    'new_traces',
    insertEach('traces', 'new_traces', {
      assign: `u.created_at_us := ${createdAtUs}; u.id := ${idAt('u.created_at_us')}; u.seq := ${seq};`,
      condition: isStored.row,
    }),
    plainInserts.traces,
  ),
  payloads: insertFewOrAll(
    'new_payloads',
    insertEach('trace_payloads', 'new_payloads', {
      assign: `u.seq := ${seq};`,
      condition: isStored.row,
    }),
    plainInserts.payloads,
  ),
};
