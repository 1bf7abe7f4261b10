import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import { rounds } from '../guarantees/crash-lab.ts';
import { startTestService } from '../support/service.ts';
import type { KeyHolder, TestService } from '../support/service.ts';

const names = 20_000;
const clients = 64;
/** 20,000 in the long form, `CRASH_ROUNDS=20`. */
const triesMin = 1_000 * rounds(1);
let service: TestService;
let wide: KeyHolder;

before(async () => {
  service = await startTestService({ flags: { 'log-level': 'silent' } });
  wide = await service.keyFor();
  await addModels(wide.teamId, names);
  for (let i = 0; i < 20; i++) {
    const body = { model: 'large', input: 'x'.repeat(256 * 1024) };
    assert.equal((await service.call(wide.key, 'POST', '/traces', body)).status, 201);
  }
});
after(() => service.stop());

async function addModels(teamId: string, count: number): Promise<void> {
  for (let at = 0; at < count; at += 1_000) {
    const drafts = Array.from({ length: 1_000 }, (_, i) => draftTrace({ model: `m${at + i}` }));
    const [outcome] = await service.beside.append([{ teamId, drafts }]);
    assert.equal(outcome?.kind, 'stored');
  }
}

test('every acknowledged trace is readable and counted at once while wide breakdowns and large pages are being read', async (t) => {
  const done = new AbortController();
  const readers = [
    ...Array.from({ length: 2 }, () => readUntil(done.signal, '/analytics/by-model', names)),
    readUntil(done.signal, '/traces?limit=100', 100),
  ];
  const tries = Math.ceil(triesMin / clients / 2);
  const misses = await Promise.all(Array.from({ length: clients }, () => oneClient(tries)));
  done.abort();
  const reads = await Promise.all(readers);
  const missed = misses.reduce((sum, n) => sum + n, 0);
  t.diagnostic(
    `${missed} misses in ${clients * tries * 2} tries on ${service.store}, beside ${reads.join(' + ')} wide reads`,
  );
  assert.equal(missed, 0);
  assert.ok(
    reads.every((count) => count > 0),
    'every reader finished at least one wide read',
  );
});

/** Writes, then looks for the trace by its id and in the overview. Each client has its own team. */
async function oneClient(tries: number): Promise<number> {
  const { key } = await service.keyFor();
  let misses = 0;
  for (let count = 1; count <= tries; count++) {
    const posted = await service.call(key, 'POST', '/traces', { model: 'm' });
    assert.equal(posted.status, 201, posted.text);
    const found = await service.call(key, 'GET', `/traces/${posted.json.id}`);
    if (found.status !== 200) misses += 1;
    const overview = await service.call(key, 'GET', '/analytics/overview');
    if (overview.json.total_calls !== count) misses += 1;
  }
  return misses;
}

/** Reads the same list again and again; answers how often. */
async function readUntil(signal: AbortSignal, path: string, rowsMin: number): Promise<number> {
  let reads = 0;
  while (!signal.aborted) {
    const { status, json } = await service.call(wide.key, 'GET', path);
    assert.equal(status, 200);
    const rows: unknown[] = Array.isArray(json) ? json : json.traces;
    assert.ok(rows.length >= rowsMin, `${rows.length} rows`);
    reads += 1;
  }
  return reads;
}
