import type pg from 'pg';
import { compile } from '../../core/compile.ts';
import { columnOf, narrowNames, payloadNames, traceFields } from '../../core/trace-fields.ts';
import type { FieldKind, NarrowTrace } from '../../core/trace-fields.ts';
import { uuidBytes } from '../../core/uuid.ts';
import { expiryOf } from '../idempotency.ts';
import { checksumOf, hasPayloads } from '../payload.ts';
import type { PackedPayloads } from '../payload.ts';
import type { Assigned } from '../sequencer.ts';
import { abandon, connect, run } from './connection.ts';
import type { Values } from './connection.ts';
import { RecordArray } from './record-array.ts';
import type { BatchRows } from './batch-rows.ts';
import type { NewRequest } from './batch-writes.ts';

type AddTrace = (record: RecordArray, team: Buffer, assigned: Assigned, trace: NarrowTrace) => void;
type AddPayloads = (
  record: RecordArray,
  team: Buffer,
  assigned: Assigned,
  payloads: PackedPayloads,
  checksum: number,
) => void;

type AddRequest = (
  record: RecordArray,
  team: Buffer,
  stored: NewRequest,
  expiresAtUs: number,
) => void;

/** How rows are sent as records of the tables' own row types. The columns and ids of these types are read from the database. */
export interface RecordTypes {
  traces: { oid: number; add: AddTrace };
  payloads: { oid: number; add: AddPayloads };
  requests: { oid: number; add: AddRequest };
}

const readColumns = `
  select t.oid::integer as type, a.attname as name, a.atttypid::integer as column_type
  from pg_type t join pg_attribute a on a.attrelid = t.typrelid
  where t.oid = $1::regtype and a.attnum > 0 and not a.attisdropped order by a.attnum`;

/** Another process may change the tables, for example while it upgrades them. */
export class KnownRecordTypes {
  readonly #pool: pg.Pool;
  current: RecordTypes;

  constructor(pool: pg.Pool, current: RecordTypes) {
    this.#pool = pool;
    this.current = current;
  }

  async readAgain(): Promise<void> {
    const client = await connect(this.#pool);
    try {
      this.current = await readRecordTypes(client);
      client.release();
    } catch (error) {
      await abandon(client, error);
      throw error;
    }
  }
}

export async function readRecordTypes(client: pg.ClientBase): Promise<RecordTypes> {
  const traces = await readType(client, 'traces');
  const payloads = await readType(client, 'trace_payloads');
  const requests = await readType(client, 'idempotency');
  return {
    traces: {
      oid: traces.oid,
      add: compile<AddTrace>(
        `(record, team, assigned, trace) => { ${recordSource(traces, traceSources)} }`,
      ),
    },
    payloads: {
      oid: payloads.oid,
      add: compile<AddPayloads>(
        `(record, team, assigned, payloads, checksum) => { ${recordSource(payloads, payloadSources)} }`,
      ),
    },
    requests: {
      oid: requests.oid,
      add: compile<AddRequest>(
        `(record, team, stored, expiresAtUs) => { ${recordSource(requests, requestSources)} }`,
      ),
    },
  };
}

interface RowType {
  oid: number;
  columns: { name: string; type: number }[];
}

async function readType(client: pg.ClientBase, table: string): Promise<RowType> {
  const { rows } = await run(client, readColumns, [table]);
  return {
    oid: Number(rows[0]?.['type']),
    columns: rows.map((row) => ({ name: String(row['name']), type: Number(row['column_type']) })),
  };
}

/** How each kind of narrow field is added. */
const addedBy: Record<Exclude<FieldKind, 'text' | 'metadata' | 'status'>, string> = {
  label: 'text',
  source: 'text',
  count: 'int4',
  dollars: 'float8',
  time: 'int8',
};

/** The source code that adds the value of each column. */
const traceSources = new Map<string, string>([
  ['team_id', 'record.uuid(team);'],
  ['seq', 'record.int8(assigned.seq);'],
  ['id', 'record.uuid(assigned.idBytes);'],
  ['created_at_us', 'record.int8(assigned.createdAtUs);'],
  ...narrowNames.map((name): [string, string] => {
    const { kind } = traceFields[name];
    if (kind === 'status') return [columnOf(name), `record.bool(trace.${name} === 'error');`];
    return [columnOf(name), `record.${addedBy[kind as keyof typeof addedBy]}(trace.${name});`];
  }),
]);

const payloadSources = new Map<string, string>([
  ['team_id', 'record.uuid(team);'],
  ['seq', 'record.int8(assigned.seq);'],
  ['checksum', 'record.int8(checksum);'],
  ['zstd_mask', 'record.int2(payloads.zstdMask);'],
  ...payloadNames.map((name): [string, string] => [name, `record.bytea(payloads.${name});`]),
]);

const requestSources = new Map<string, string>([
  ['team_id', 'record.uuid(team);'],
  ['key_hash', 'record.text(stored.request.keyHash);'],
  ['body_hash', 'record.text(stored.request.bodyHash);'],
  ['first_seq', 'record.int8(stored.firstSeq);'],
  ['count', 'record.int4(stored.count);'],
  ['rejected', 'record.text(stored.request.rejected);'],
  ['expires_at_us', 'record.int8(expiresAtUs);'],
]);

/** A column that a newer version has added is not set. */
function recordSource({ columns }: RowType, sources: ReadonlyMap<string, string>): string {
  const added = columns.map(({ name, type }) => sources.get(name) ?? `record.none(${type});`);
  return `record.begin(${columns.length}); ${added.join(' ')} record.end();`;
}

/** The requests of one batch as a parameter. */
export function requestRecords(
  { requests: { oid, add } }: RecordTypes,
  requests: readonly NewRequest[],
  wallUs: number,
): Buffer {
  const records = new RecordArray();
  for (const stored of requests) {
    add(records, uuidBytes(stored.teamId), stored, expiryOf(wallUs));
  }
  return records.toBuffer(oid);
}

/** The traces of one batch as two parameters. They may belong to several teams. */
export class TraceRecords implements BatchRows {
  readonly #types: RecordTypes;
  readonly #traces = new RecordArray();
  readonly #payloads = new RecordArray();
  #first: BatchRows['first'] = null;
  #teamId = '';
  #team: Buffer = Buffer.alloc(0);

  constructor(types: RecordTypes) {
    this.#types = types;
  }

  get first(): BatchRows['first'] {
    return this.#first;
  }

  get traceCount(): number {
    return this.#traces.count;
  }

  get payloadCount(): number {
    return this.#payloads.count;
  }

  add(teamId: string, assigned: Assigned, trace: NarrowTrace, payloads: PackedPayloads): void {
    this.#first ??= { teamId, id: assigned.id };
    // Most often the team of the trace before.
    if (teamId !== this.#teamId) {
      this.#teamId = teamId;
      this.#team = uuidBytes(teamId);
    }
    this.#types.traces.add(this.#traces, this.#team, assigned, trace);
    if (!hasPayloads(payloads)) return;
    const checksum = payloads.checksum ?? checksumOf(payloads);
    this.#types.payloads.add(this.#payloads, this.#team, assigned, payloads, checksum);
  }

  traceValues(): Values {
    return [this.#traces.toBuffer(this.#types.traces.oid)];
  }

  payloadValues(): Values {
    return [this.#payloads.toBuffer(this.#types.payloads.oid)];
  }
}
