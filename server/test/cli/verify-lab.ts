import assert from 'node:assert/strict';
import { copyFileSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { after } from 'node:test';
import { inOrder, mergeLatencies } from '../../src/core/latency-blob.ts';
import { LatencyCounts } from '../../src/core/latency-counts.ts';
import type { Histogram } from '../../src/core/latency-histogram.ts';
import { rollupPathOf } from '../../src/store/sqlite/rollup-file.ts';
import { addedColumns } from '../../src/query/sums-sql.ts';
import { shortColumns } from '../../src/store/trace-rows.ts';
import { withTool } from '../guarantees/crash-lab.ts';
import { rollUp } from '../support/roll-up.ts';
import { assertNoStack, toolInFolder, toolOn } from './helpers.ts';
import type { Tool } from './helpers.ts';

export interface Report {
  ok: boolean;
  teams: number;
  traces: number;
  differences: string[];
  /** With --repair: the teams whose sums were repaired. */
  repaired?: string[];
}

export const rows = 60;

/** Two teams with 60 traces each over three days. Every test damages its own copy. */
export async function newCleanStore(): Promise<{ clean: Tool; copyOfClean: () => Tool }> {
  const clean = toolInFolder({ after });
  for (const team of ['alpha', 'beta']) {
    await clean.json('demo', '--count', String(rows), '--days', '3', '--team', team);
  }
  await withTool(clean.path, (store) => rollUp(store));
  const files = [clean.path, rollupPathOf(clean.path)];
  for (const file of files) {
    assert.equal(sizeOf(`${file}-wal`), 0, 'the file alone does not hold everything');
  }
  let copies = 0;
  const copyOfClean = () => {
    const path = `${clean.path}.copy-${++copies}`;
    copyFileSync(clean.path, path);
    copyFileSync(rollupPathOf(clean.path), rollupPathOf(path));
    return toolOn(path);
  };
  return { clean, copyOfClean };
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** The connection has both files: names of tables are different in them. */
export function damage(tool: Tool, harm: (db: DatabaseSync) => void): void {
  const db = new DatabaseSync(tool.path, { enableForeignKeyConstraints: false, defensive: false });
  db.prepare('attach ? as rollup_file').run(rollupPathOf(tool.path));
  harm(db);
  db.close();
}

/** Runs one statement that must change something, or the test would prove nothing. */
export function change(db: DatabaseSync, sql: string): void {
  assert.ok(Number(db.prepare(sql).run().changes) > 0, `nothing was changed by: ${sql}`);
}

export async function report(tool: Tool, ...args: string[]): Promise<Report> {
  const result = await tool.run('verify', '--json', ...args);
  assertNoStack(result);
  const parsed = JSON.parse(result.stdout) as Report;
  assert.equal(result.code, parsed.ok ? 0 : 1);
  assert.equal(parsed.ok, parsed.differences.length === 0);
  return parsed;
}

// Of the team alpha, which has the number 1: the trace in the middle, the last one, and some rows of sums.
export const middle = `key = (1 << 40 | ${rows / 2})`;
export const last = `key = (1 << 40 | ${rows})`;
const groupOf = (setNo: number) =>
  `(select no from rollup_groups where team_no = 1 and set_no = ${setNo} and is_error = 0 limit 1)`;
/** Successes over all time, and on the first day. */
export const total = `team_no = 1 and set_no = 0 and grain = 0 and group_no = ${groupOf(0)}`;
const firstDay = `team_no = 1 and set_no = 0 and grain = 1 and group_no = ${groupOf(0)} and bucket =
  (select min(bucket) from rollups where team_no = 1 and set_no = 0 and grain = 1 and group_no = ${groupOf(0)})`;
const copied = shortColumns.replace(/^id, /, '');
const copyOfLast = `insert into traces (key, id, ${copied})
  select key + 1, randomblob(16), ${copied} from traces where ${last}`;
const sums = addedColumns.join(', ');
const copyOfTotal = `insert into rollups
  select team_no, generation, set_no, grain, bucket, 999999, ${sums}, latencies from rollups where ${total}`;

type Harm = string | ((db: DatabaseSync) => void);

/** Changes the latencies over all time. */
function withLatencies(alter: (latencies: Histogram) => void): Harm {
  return (db) => {
    const row = db.prepare(`select latencies from rollups where ${total}`).get();
    const counts = new LatencyCounts();
    counts.addEncoded(row?.['latencies'] as Uint8Array);
    const latencies: Histogram = new Map();
    counts.addTo(latencies);
    alter(latencies);
    const put = db.prepare(`update rollups set latencies = ? where ${total}`);
    const encoded = mergeLatencies(new Uint8Array(), inOrder(latencies));
    assert.equal(put.run(encoded).changes, 1);
  };
}

function moveOneLatency(latencies: Histogram): void {
  const [bucket = 0, count = 0] = [...latencies][0] ?? [];
  latencies.set(bucket, count - 1);
  latencies.set(bucket + 1, (latencies.get(bucket + 1) ?? 0) + 1);
}

type Damages = Record<string, [harm: Harm, says: RegExp]>;

/** Damage to the traces and counters, and what verify must report. */
export const damages: Damages = {
  'a trace deleted in the middle': [
    `delete from traces where ${middle}`,
    /^team alpha: sequence: expected trace 30, found 31$/m,
  ],
  'a value that no request could have stored': [
    `update traces set run_id = '${'ab'.repeat(5000)}' where ${middle}`,
    /^team alpha: trace 30 \([0-9a-f-]+\): run_id must be at most 255 characters long$/m,
  ],
  'the last trace deleted': [
    `delete from traces where ${last}`,
    /^team alpha: counter: last sequence number is 60, but the last trace has 59$/m,
  ],
  'a trace under a later number': [
    `update traces set key = key + 1 where ${last}`,
    /^team alpha: sequence: expected trace 60, found 61$/m,
  ],
  'a trace that is there twice': [
    copyOfLast,
    /^team alpha: counter: last sequence number is 60, but the last trace has 61$/m,
  ],
  'a counter that is one ahead': [
    'update team_counters set last_seq = last_seq + 1 where team_no = 1',
    /^team alpha: counter: last sequence number is 61, but the last trace has 60$/m,
  ],
  'a counter that is one behind': [
    'update team_counters set last_seq = last_seq - 1 where team_no = 1',
    /^team alpha: counter: last sequence number is 59, but the last trace has 60$/m,
  ],
  'a counter that begins late': [
    'update team_counters set first_seq = 2 where team_no = 1',
    /^team alpha: sequence: expected trace 2, found 1$/m,
  ],
  'a counter with another last time': [
    'update team_counters set last_created_at_us = last_created_at_us + 1 where team_no = 1',
    /^team alpha: counter: last time is \d+, but the time of the last trace is \d+$/m,
  ],
  'a counter that is gone': [
    'delete from team_counters where team_no = 1',
    /^team alpha: counter: last sequence number is 0, but the last trace has 60$/m,
  ],
  'the cost of a trace changed': [
    `update traces set cost_usd = cost_usd + 0.000001 where ${middle}`,
    /^team alpha: rollup all time status="\w+": cost_picos is \d+, but the traces add up to \d+$/m,
  ],
  'a trace moved to another day': [
    `update traces set started_at_us = created_at_us - 10 * 86400000000 where ${middle}`,
    /^team alpha: rollup day \d{4}-\d\d-\d\d status="\w+": missing$/m,
  ],
  'the model of a trace changed': [
    `update traces set model = 'other' where ${middle}`,
    /^team alpha: rollup all time status="\w+" .*model="other": missing$/m,
  ],
  'the user of a trace changed': [
    `update traces set user_identifier = 'other' where ${middle}`,
    /^team alpha: trace 30: missing lookups: 1\n.*^team alpha: trace 30: wrong lookups: 1$/ms,
  ],
  'payloads with a wrong checksum': [
    `update trace_payloads set checksum = checksum + 1 where ${middle}`,
    /^team alpha: trace 30 \([0-9a-f-]{36}\): damaged input, output/m,
  ],
  'a payload that was replaced': [
    `update trace_payloads set output = x'41' where ${middle}`,
    /^team alpha: trace 30 \([0-9a-f-]{36}\): damaged .*output/m,
  ],
  'payloads of a trace that does not exist': [
    `update trace_payloads set key = key + 1000 where ${last}`,
    /^storage: payloads without a trace: 1$/m,
  ],
  'sums of a team that does not exist': [
    "insert into roll_marks values (77, 1, 'UTC', 0, 1, 0, null, 0, null)",
    /^storage: rows of a team that does not exist: team number 77$/m,
  ],
  'a trace of a team that does not exist': [
    copyOfLast.replace('key + 1', '77 << 40 | 1'),
    /^storage: rows of a team that does not exist: team number 77$/m,
  ],
};

/** Damage to what can be built again from the traces. */
export const repairable: Damages = {
  'one call too many': [
    `update rollups set calls = calls + 1 where ${total}`,
    /^team alpha: rollup all time status="success": calls is \d+, but the traces add up to \d+$/m,
  ],
  ...Object.fromEntries(
    addedColumns.slice(1).map((column): [string, Damages[string]] => {
      const name = column === 'cost_micros' ? 'cost_picos' : column;
      const says = `rollup all time status="success": ${name} is \\d+, but the traces add up to`;
      const harm = `update rollups set ${column} = ${column} + 1 where ${total}`;
      return [`one too many in ${column}`, [harm, new RegExp(says)]];
    }),
  ),
  'a latency in the wrong bucket of the histogram': [
    withLatencies(moveOneLatency),
    /rollup all time status="success": its latency histogram differs from the traces$/m,
  ],
  'a histogram that is cut off': [
    `update rollups set latencies = substr(latencies, 1, length(latencies) - 1) where ${total}`,
    /rollup all time status="success": its latency histogram cannot be decoded: a stored number is cut off$/m,
  ],
  'a latency that does not exist': [
    `update rollups set latencies = x'ff7f01' where ${total}`,
    /rollup all time status="success": its latency histogram cannot be decoded: a stored latency is out of range$/m,
  ],
  'a row of sums deleted': [
    `delete from rollups where ${total}`,
    /^team alpha: rollup all time status="success": missing$/m,
  ],
  'a row of sums without traces': [
    `update rollups set bucket = bucket - 1000 where ${firstDay}`,
    /^team alpha: rollup day \d{4}-\d\d-\d\d status="success": it has no traces$/m,
  ],
  'a row of sums without a group': [
    copyOfTotal,
    /^team alpha: rollup of the group [0-9a-f]{16}: the values of the group are missing$/m,
  ],
  'a group deleted': [
    `delete from rollup_groups where no = ${groupOf(1)}`,
    /^team alpha: rollup of the group [0-9a-f]{16}: the values of the group are missing$/m,
  ],
  'a group with another name': [
    `update rollup_groups set model = 'other' where no = ${groupOf(1)}`,
    /^team alpha: rollup of the group [0-9a-f]{32}: the values of the group are different$/m,
  ],
  'a lookup deleted': [
    `delete from trace_lookups where team_no = 1 and instr(seqs, x'001e')`,
    /^team alpha: trace 30: missing lookups: \d+$/m,
  ],
  'a lookup of a value that the trace does not have': [
    "insert into trace_lookups values (1, 0, 123456789, x'001e')",
    /^team alpha: trace 30: wrong lookups: 1$/m,
  ],
  'a lookup of a trace that does not exist': [
    "insert into trace_lookups values (1, 0, 123456789, x'003d')",
    /^team alpha: trace 61: wrong lookups: 1$/m,
  ],
  'a lookup twice': [
    `update trace_lookups set seqs = cast(seqs || substr(seqs, -2) as blob) where team_no = 1 and instr(seqs, x'003c')`,
    /^team alpha: trace 60: wrong lookups: \d+$/m,
  ],
  'lookups that are cut off': [
    'update trace_lookups set seqs = substr(seqs, 1, length(seqs) - 1) where team_no = 1',
    /^team alpha: trace \d+: missing lookups: \d+$/m,
  ],
  'a mark that is behind its sums': [
    `update roll_marks set seq = seq - 1, trace_id = (select id from traces where key = (1 << 40 | ${rows - 1}))
     where team_no = 1`,
    /^team alpha: rollup .* user_identifier="[^"]+": /m,
  ],
};

/** Marks that do not fit the traces: no answer uses their rollups, so nothing is wrong. */
export const voidMarks: Record<string, string> = {
  'a mark that is ahead of the traces': 'update roll_marks set seq = seq + 1 where team_no = 1',
  'a mark of other traces': 'update roll_marks set trace_id = randomblob(16) where team_no = 1',
  'a mark that is ahead of the changes':
    'update roll_marks set change_no = change_no + 1 where team_no = 1',
  'no mark': 'delete from roll_marks where team_no = 1',
};

export function inflict(tool: Tool, harm: Harm): void {
  damage(tool, (db) => (typeof harm === 'string' ? change(db, harm) : harm(db)));
}
