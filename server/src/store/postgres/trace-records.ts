import type pg from 'pg';
import { compile } from '../../core/compile.ts';
import { bucketOf } from '../../core/latency-histogram.ts';
import { costOf } from '../../core/trace-cost.ts';
import { columnOf, narrowNames, payloadNames, traceFields } from '../../core/trace-fields.ts';
import type { FieldKind, NarrowTrace } from '../../core/trace-fields.ts';
import { checksumOf, hasPayloads } from '../payload.ts';
import type { PackedPayloads } from '../payload.ts';
import type { Assigned } from '../sequencer.ts';
import type { IdempotentRequest } from '../trace-writer.ts';
import { abandon, connect, run } from './connection.ts';
import { RecordArray } from './record-array.ts';

/** The numbers of a trace, or what is sent in their place. */
type RecordPlace = Pick<Assigned, 'seq' | 'idBytes' | 'createdAtUs'>;

type AddTrace = (record: RecordArray, team: Buffer, place: RecordPlace, trace: NarrowTrace) => void;
type AddPayloads = (
  record: RecordArray,
  team: Buffer,
  place: RecordPlace,
  payloads: PackedPayloads,
  checksum: number,
) => void;

type AddRequest = (
  record: RecordArray,
  team: Buffer,
  request: IdempotentRequest,
  writeNo: number,
  count: number,
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
        `(record, team, place, trace) => { const cost = costOf(trace); ${recordSource(traces, traceSources)} }`,
        { costOf, bucketOf },
      ),
    },
    payloads: {
      oid: payloads.oid,
      add: compile<AddPayloads>(
        `(record, team, place, payloads, checksum) => { ${recordSource(payloads, payloadSources)} }`,
      ),
    },
    requests: {
      oid: requests.oid,
      add: compile<AddRequest>(
        `(record, team, request, writeNo, count) => { ${recordSource(requests, requestSources)} }`,
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
  ['seq', 'record.int8(place.seq);'],
  ['id', 'record.uuid(place.idBytes);'],
  ['created_at_us', 'record.int8(place.createdAtUs);'],
  ...narrowNames.map((name): [string, string] => {
    const { kind } = traceFields[name];
    if (kind === 'status') return [columnOf(name), `record.bool(trace.${name} === 'error');`];
    return [columnOf(name), `record.${addedBy[kind as keyof typeof addedBy]}(trace.${name});`];
  }),
  ['cost_micros', 'record.int8(cost === null ? null : cost.micros);'],
  ['cost_picos', 'record.int4(cost === null ? null : cost.picos);'],
  ['latency_bin', 'record.int2(trace.latency_ms === null ? null : bucketOf(trace.latency_ms));'],
]);

const payloadSources = new Map<string, string>([
  ['team_id', 'record.uuid(team);'],
  ['seq', 'record.int8(place.seq);'],
  ['checksum', 'record.int8(checksum);'],
  ['zstd_mask', 'record.int2(payloads.zstdMask);'],
  ...payloadNames.map((name): [string, string] => [name, `record.bytea(payloads.${name});`]),
]);

const requestSources = new Map<string, string>([
  ['team_id', 'record.uuid(team);'],
  ['key_hash', 'record.text(request.keyHash);'],
  ['body_hash', 'record.text(request.bodyHash);'],
  ['first_seq', 'record.int8(writeNo);'],
  ['count', 'record.int4(count);'],
  ['rejected', 'record.text(request.rejected);'],
  ['expires_at_us', 'record.int8(0);'],
]);

/** A column that a newer version has added is not set. */
function recordSource({ columns }: RowType, sources: ReadonlyMap<string, string>): string {
  const added = columns.map(({ name, type }) => sources.get(name) ?? `record.none(${type});`);
  return `record.begin(${columns.length}); ${added.join(' ')} record.end();`;
}

/** The idempotent requests and ids of calls that one call of the function adds, as its parameter. */
export class RequestRecords {
  readonly #type: RecordTypes['requests'];
  readonly #records = new RecordArray();

  constructor({ requests }: RecordTypes) {
    this.#type = requests;
  }

  /** In place of the first sequence number, a record has the number of its write. */
  add(team: Buffer, request: IdempotentRequest, writeNo: number, count: number): void {
    this.#type.add(this.#records, team, request, writeNo, count);
  }

  toBuffer(): Buffer {
    return this.#records.toBuffer(this.#type.oid);
  }
}

/** Traces as two parameters: their rows and the rows of their payloads. They may belong to several teams. */
export class TraceRecords {
  readonly #types: RecordTypes;
  readonly #traces = new RecordArray();
  readonly #payloads = new RecordArray();

  constructor(types: RecordTypes) {
    this.#types = types;
  }

  add(team: Buffer, place: RecordPlace, trace: NarrowTrace, payloads: PackedPayloads): void {
    this.#types.traces.add(this.#traces, team, place, trace);
    if (!hasPayloads(payloads)) return;
    const checksum = payloads.checksum ?? checksumOf(payloads);
    this.#types.payloads.add(this.#payloads, team, place, payloads, checksum);
  }

  toBuffers(): [traces: Buffer, payloads: Buffer] {
    const { traces, payloads } = this.#types;
    return [this.#traces.toBuffer(traces.oid), this.#payloads.toBuffer(payloads.oid)];
  }
}
