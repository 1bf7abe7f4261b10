import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readDatabase } from '../../src/config.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { callCli } from '../support/cli.ts';
import type { CliResult } from '../support/cli.ts';
import { runSql } from '../support/store-place.ts';
import { assertNoStack } from './helpers.ts';

/** What `tracetally copy --json` prints. */
export interface CopyJson {
  ok: boolean;
  teams: number;
  keys: number;
  traces: number;
  copied: number;
  differences: string[];
}

export function copyArgs(from: string, to: string, ...more: string[]): string[] {
  return ['copy', '--from', from, '--to', to, ...more];
}

/** A copy that must succeed. */
export async function copyAll(from: string, to: string): Promise<CopyJson> {
  return copyJson(await callCli(copyArgs(from, to, '--json')));
}

export function copyJson(result: CliResult): CopyJson {
  assertNoStack(result);
  assert.equal(result.code, 0, `${result.stdout}${result.stderr}`);
  const report = JSON.parse(result.stdout) as CopyJson;
  assert.deepEqual([report.ok, report.differences], [true, []]);
  return report;
}

/** Everything that a store's tables hold, as one hash. */
export async function contentsOf(database: string): Promise<string> {
  const place = readDatabase({ database }, {});
  const tables = await runSql(
    place,
    place.kind === 'sqlite'
      ? "select name from sqlite_schema where type = 'table' order by name"
      : "select tablename as name from pg_tables where schemaname = 'public' order by 1",
  );
  assert.ok(tables.length >= 7, `${tables.length} tables`);
  const hash = createHash('sha256');
  for (const { name } of tables) {
    const rows = await runSql(place, `select * from ${String(name)}`);
    const lines = rows.map((row) => JSON.stringify(row)).sort();
    hash.update(`${String(name)}\n${lines.join('\n')}\n`);
  }
  return hash.digest('hex');
}

export async function withStoreAt<T>(
  database: string,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  const place = readDatabase({ database }, {});
  const store = await openStore(place, { clock: { kind: 'system' }, role: 'tool' });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

export async function assertVerifies(database: string): Promise<void> {
  const result = await callCli(['verify', '--database', database]);
  assert.equal(result.code, 0, `${result.stdout}${result.stderr}`);
}

/** All traces of two stores against each other, payloads and all, in their order. */
export async function assertSameTraces(from: string, to: string): Promise<number> {
  return withStoreAt(from, (source) =>
    withStoreAt(to, async (target) => {
      let traces = 0;
      for (const { id, name } of await source.teams(0)) {
        const counter = await source.counter(id);
        assert.deepEqual(await target.counter(id), counter, name);
        for (let firstSeq = counter.firstSeq; firstSeq <= counter.lastSeq; firstSeq += 500) {
          const range = { firstSeq, count: Math.min(500, counter.lastSeq - firstSeq + 1) };
          assert.deepEqual(await target.range(id, range), await source.range(id, range));
        }
        traces += counter.lastSeq - counter.firstSeq + 1;
      }
      return traces;
    }),
  );
}
