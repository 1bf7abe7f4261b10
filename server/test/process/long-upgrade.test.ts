import assert from 'node:assert/strict';
import { copyFileSync, readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { uuidV7Bytes } from '../../src/core/uuid.ts';
import { runCli, spawnCli } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { call, startServer, toolInFolder } from '../cli/helpers.ts';

const fixtures = new URL('../guarantees/fixtures/', import.meta.url);
/** Enough for an upgrade of several seconds. */
const traces = 100_000;

interface Line {
  level: string;
  msg: string;
  done: number;
  total: number;
}

function upgradeLines(stderr: string): Line[] {
  return stderr
    .split('\n')
    .filter((text) => text.endsWith('}'))
    .map((text) => JSON.parse(text) as Line)
    .filter(({ msg }) => msg === 'upgrading the database');
}

/** Repeats the traces of a file of schema 4, each time with new ids and later times. */
function multiplyTraces(path: string): void {
  const db = new DatabaseSync(path);
  const columns = db
    .prepare("select name from pragma_table_info('traces')")
    .all()
    .map(({ name }) => String(name))
    .filter((name) => !['key', 'id', 'created_at_us'].includes(name))
    .join(', ');
  const team = 'select no from teams';
  const last = db.prepare('select last_seq, last_created_at_us as us from team_counters').get();
  const [lastSeq, lastUs] = [Number(last?.['last_seq']), Number(last?.['us'])];
  const copy = db.prepare(
    `insert into traces (key, id, created_at_us, ${columns})
     select ((${team}) << 40) | ?, ?, ?, ${columns} from traces where key = ((${team}) << 40) | ?`,
  );
  db.exec('pragma synchronous = off; begin');
  for (let seq = lastSeq + 1; seq <= traces; seq++) {
    const us = lastUs + seq;
    copy.run(seq, uuidV7Bytes(us), us, 1 + (seq % lastSeq));
  }
  db.prepare('update team_counters set last_seq = ?, last_created_at_us = ?').run(
    traces,
    lastUs + traces,
  );
  db.exec('commit');
  db.close();
}

test('a long upgrade logs its progress about once per second, and one that is killed continues at the next start', async (t) => {
  const tool = toolInFolder(t);
  copyFileSync(new URL('schema-4.db', fixtures), tool.path);
  multiplyTraces(tool.path);
  const { key } = JSON.parse(readFileSync(new URL('schema-4.json', fixtures), 'utf8')) as {
    key: string;
  };

  const child = spawnCli(['serve', '--port', '0', '--database', tool.database]);
  t.after(() => void child.kill('SIGKILL'));
  let stderr = '';
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
  const ended = new Promise((resolve) => child.once('close', resolve));
  const startMs = performance.now();
  const seen = await eventually(
    'two lines about the upgrade',
    120_000,
    () => upgradeLines(stderr).length >= 2 && upgradeLines(stderr),
  );
  assert.ok(performance.now() - startMs > 1_900, 'there are more than one line per second');
  const [first, second] = seen;
  assert.ok(first && second);
  assert.equal(first.level, 'info');
  assert.ok(first.done > 0 && first.done <= first.total, JSON.stringify(first));
  child.kill('SIGKILL');
  await ended;

  const server = await startServer(t, tool);
  const { body } = await call<{ total_calls: number }>(`${server.url}/analytics/overview`, key);
  assert.equal(body.total_calls, traces);
  assert.equal(await server.end('SIGTERM'), 0);
  const verified = await runCli(['verify', '--database', tool.database]);
  assert.equal(verified.code, 0, verified.stdout);
});
