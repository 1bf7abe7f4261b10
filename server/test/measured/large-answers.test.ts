import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import { callCli, spawnServer } from '../support/cli.ts';
import { startTestService, temporaryFolder, totalOf } from '../support/service.ts';
import { storeAtLast } from '../support/store-at-last.ts';

const mib = 1024 * 1024;

test('two traces with the largest allowed numbers are answered', async () => {
  const service = await startTestService();
  try {
    const { key } = await service.keyFor();
    const most = 2 ** 31 - 1;
    const body = {
      model: 'm',
      prompt_tokens: most,
      completion_tokens: most,
      latency_ms: most,
      cost_usd: 1_000_000,
      feature_name: 'f',
    };
    for (let i = 0; i < 2; i++)
      assert.equal((await service.call(key, 'POST', '/traces', body)).status, 201);
    const overview = await service.call(key, 'GET', '/analytics/overview');
    assert.equal(
      overview.text,
      `{"total_calls":2,"avg_latency_ms":${most},"total_cost_usd":2000000.000000,"success_rate":100,"error_count":0}`,
    );
    for (const path of [
      '/analytics/by-model',
      '/analytics/by-feature',
      '/analytics/daily',
      '/traces',
    ]) {
      assert.equal((await service.call(key, 'GET', path)).status, 200, path);
    }
  } finally {
    await service.stop();
  }
});

test('50,000 distinct models and features are counted and answered', async () => {
  const service = await startTestService();
  try {
    const { key, teamId } = await service.keyFor();
    const names = Array.from({ length: 50_000 }, (_, i) => `name-${i}`);
    const drafts = names.map((name) =>
      draftTrace({ model: name, feature_name: name, cost_usd: 0.000001 }),
    );
    for (let i = 0; i < drafts.length; i += 10_000) {
      // The service rolls up the ones before.
      await storeAtLast(service.beside, { teamId, drafts: drafts.slice(i, i + 10_000) });
    }
    const models = (await service.call(key, 'GET', '/analytics/by-model')).json;
    const features = (await service.call(key, 'GET', '/analytics/by-feature')).json;
    assert.equal(models.length, 50_000);
    assert.equal(features.length, 50_000);
    assert.deepEqual(
      models.map((record: { model: string }) => record.model),
      names.toSorted(),
    );
    const overview = await service.call(key, 'GET', '/analytics/overview');
    assert.match(overview.text, /"total_cost_usd":0\.050000/);
  } finally {
    await service.stop();
  }
});

test('a page of 100 traces of 5 MiB each is streamed while memory grows by less than 200 MB', async (t) => {
  const folder = temporaryFolder();
  const path = join(folder.path, 'large.db');
  const key = await makeKeyFor(path);
  const flags = ['--database', `sqlite:${path}`];
  // Random text does not compress, so every byte is really stored and sent.
  const payload = randomBytes((5 * mib - 64 * 1024) / 2).toString('hex');
  const writing = await openSqliteStore({ path, clock: { kind: 'system' }, role: 'tool' });
  const { team } = await writing.ensureTeam('large', 1);
  for (let i = 0; i < 100; i++) {
    const drafts = [draftTrace({ model: `m${i}`, input: payload })];
    const [outcome] = await writing.append([{ teamId: team.id, drafts }]);
    assert.equal(outcome?.kind, 'stored');
  }
  await writing.close();
  // How much garbage lies about at the peak is the collector's luck, so the best of five counts. Without streaming each holds 500 MB.
  const grownMb: number[] = [];
  for (let attempt = 0; attempt < 5 && !(Math.min(...grownMb) < 200); attempt++) {
    // A fresh process, so that nothing of the writing hides what the reading needs.
    const reading = await spawnServer(flags);
    await fetch(`${reading.url}/readyz`);
    const before = await peakResidentBytes(reading.child.pid);
    const { bytes, tail } = await readAll(`${reading.url}/traces?limit=100`, key);
    const peak = await peakResidentBytes(reading.child.pid);
    assert.equal(await reading.end('SIGTERM'), 0);
    assert.ok(bytes > 100 * payload.length, `${bytes} bytes`);
    assert.match(tail, /\],"total":100,"page":1,"limit":100\}$/);
    grownMb.push(Math.round((peak - before) / 1e6));
  }
  t.diagnostic(`memory grew by ${grownMb.join(', ')} MB`);
  assert.ok(Math.min(...grownMb) < 200, `memory grew by ${grownMb.join(', ')} MB`);
  folder.remove();
});

async function makeKeyFor(path: string): Promise<string> {
  const made = await callCli([
    'keys',
    'create',
    '--team',
    'large',
    '--json',
    '--database',
    `sqlite:${path}`,
  ]);
  return (JSON.parse(made.stdout) as { key: string }).key;
}

/** Reads a reply as a stream, as fast as it comes, and keeps only its end. */
async function readAll(url: string, key: string): Promise<{ bytes: number; tail: string }> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
  let bytes = 0;
  let tail = '';
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    tail = (tail + Buffer.from(chunk.slice(-100)).toString('latin1')).slice(-100);
  }
  return { bytes, tail };
}

/** The most that was ever resident, as the system counted it. */
async function peakResidentBytes(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}

test('a streamed page is the same text as its traces, even if slices end inside a character', async () => {
  const service = await startTestService();
  try {
    const { key } = await service.keyFor();
    // Pairs of surrogates, shifted by one from trace to trace, so that some slice ends between two halves.
    const inputs = [0, 1, 2].map((shift) => 'x'.repeat(shift) + '😀'.repeat(400_000));
    for (const input of inputs) {
      assert.equal((await service.call(key, 'POST', '/traces', { model: 'm', input })).status, 201);
    }
    const page = await service.call(key, 'GET', '/traces');
    const read = page.json.traces.map((trace: { input: string }) => trace.input).toReversed();
    assert.equal(page.headers.get('content-length'), null);
    for (const [i, input] of inputs.entries()) assert.ok(read[i] === input, `trace ${i} differs`);
  } finally {
    await service.stop();
  }
});

test('money stays exact through the store for 100,000 costs', async () => {
  const folder = temporaryFolder();
  const store = await openSqliteStore({
    path: join(folder.path, 'money.db'),
    clock: { kind: 'system' },
    role: 'server',
  });
  try {
    const { team } = await store.ensureTeam('money', 1);
    let picos = 0n;
    for (let batch = 0; batch < 100; batch++) {
      const drafts = Array.from({ length: 1000 }, (_, i) => {
        // 12 decimals, up to 15 significant digits, different each time.
        const digits = (BigInt(batch * 1000 + i + 1) * 7_919_777_777n) % 10n ** 15n;
        picos += digits;
        const text = String(digits).padStart(13, '0');
        return draftTrace({
          model: 'm',
          cost_usd: Number(`${text.slice(0, -12)}.${text.slice(-12)}`),
        });
      });
      await store.append([{ teamId: team.id, drafts }]);
    }
    assert.equal((await totalOf(store, team.id)).cost_picos, picos);
  } finally {
    await store.close();
    folder.remove();
  }
});
