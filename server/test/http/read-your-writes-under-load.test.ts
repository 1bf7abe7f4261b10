import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { draftTrace } from '../../src/core/trace.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { rounds } from '../guarantees/crash-lab.ts';
import { rollUp } from '../support/roll-up.ts';
import { chooseSeed, pick, seededRandom } from '../support/seeded-random.ts';
import { databaseIn, testStore } from '../support/store-place.ts';
import { startTestService, temporaryFolder } from '../support/service.ts';
import type { KeyHolder, TestService } from '../support/service.ts';
import { storeAtLast } from '../support/store-at-last.ts';

const seed = chooseSeed();
const random = seededRandom(seed);
const names = 20_000;
const clients = 64;
/** 20,000 in the long form, `CRASH_ROUNDS=50`. */
const triesMin = 400 * rounds(1);
/** How often each roller must have had something to roll up meanwhile. With ten busy processes per core it was 28 times. */
const rollsMin = 8 * rounds(1);
/** Only one server can use a file. */
const serverCount = testStore === 'sqlite' ? 1 : 4;
const folder = temporaryFolder();
const services: TestService[] = [];
let database = '';
let wide: KeyHolder;

before(async () => {
  database = await databaseIn(folder.path);
  const flags = { 'log-level': 'silent', database };
  for (let i = 0; i < serverCount; i++) {
    services.push(await startTestService({ flags, folder: folder.path }));
  }
  wide = await anyServer().keyFor();
  await addModels(wide.teamId, names);
  for (let i = 0; i < 20; i++) {
    const body = { model: 'large', input: 'x'.repeat(256 * 1024) };
    assert.equal((await anyServer().call(wide.key, 'POST', '/traces', body)).status, 201);
  }
});
after(async () => {
  for (const service of services) await service.stop();
  folder.remove();
});

function anyServer(): TestService {
  return pick(random, services);
}

async function addModels(teamId: string, count: number): Promise<void> {
  for (let at = 0; at < count; at += 1_000) {
    const drafts = Array.from({ length: 1_000 }, (_, i) => draftTrace({ model: `m${at + i}` }));
    await storeAtLast(anyServer().beside, { teamId, drafts });
  }
}

test('every acknowledged trace is readable and counted at once on every server, while traces are rolled up and wide breakdowns and large pages are read', async (t) => {
  t.diagnostic(`seed ${seed}`);
  const done = new AbortController();
  const holders = await Promise.all(Array.from({ length: clients }, () => anyServer().keyFor()));
  const teamIds = holders.map(({ teamId }) => teamId);
  const readers = [
    ...Array.from({ length: 2 }, () => readUntil(done.signal, '/analytics/by-model', names)),
    readUntil(done.signal, '/traces?limit=100', 100),
  ];
  const rollers = [rollUntil(done.signal, teamIds), rollUntil(done.signal, teamIds.toReversed())];
  t.after(() => done.abort());
  const tries = Math.ceil(triesMin / clients / 2);
  const misses = (await Promise.all(holders.map(({ key }) => oneClient(key, tries)))).flat();
  done.abort();
  const reads = await Promise.all(readers);
  const rolled = await Promise.all(rollers);
  t.diagnostic(
    `${misses.length} misses in ${clients * tries * 2} tries on ${serverCount} ${testStore} servers, beside ` +
      `${reads.join(' + ')} wide reads and ${rolled.join(' + ')} rolls`,
  );
  assert.deepEqual(misses, []);
  assert.ok(
    reads.every((count) => count > 0),
    'every reader finished at least one wide read',
  );
  assert.ok(
    rolled.reduce((sum, count) => sum + count, 0) >= rollsMin,
    'traces were rolled up meanwhile',
  );
  const { beside } = anyServer();
  await rollUp(beside, teamIds);
  for (const teamId of teamIds) {
    assert.deepEqual(await verifyTeam(beside, teamId), { traces: tries, differences: [] });
  }
});

/** Writes, then looks for the trace by its id and in the overview. Each client has its own team. Returns what was missing. */
async function oneClient(key: string, tries: number): Promise<string[]> {
  const misses: string[] = [];
  for (let count = 1; count <= tries; count++) {
    const posted = await callInTime(key, 'POST', '/traces', { model: 'm' });
    assert.equal(posted.status, 201, posted.text);
    const found = await callInTime(key, 'GET', `/traces/${posted.json.id}`);
    if (found.status !== 200) misses.push(`trace ${count}: ${found.status} ${found.json.code}`);
    const overview = await callInTime(key, 'GET', '/analytics/overview');
    const { total_calls: total, code } = overview.json;
    if (total !== count) misses.push(`total of ${count}: ${overview.status} ${code ?? total}`);
  }
  return misses;
}

/**
 * On a busy machine, where all servers are in one process, the database may answer too late. A write that gets this error is not stored,
 * and a read that gets it has returned no trace and no total; so both are sent again.
 */
async function callInTime(
  key: string,
  method: string,
  path: string,
  body?: unknown,
  attemptsLeft = 3,
): Promise<Awaited<ReturnType<TestService['call']>>> {
  const reply = await anyServer().call(key, method, path, body);
  if (reply.json.code !== 'store_unavailable' || attemptsLeft === 0) return reply;
  return callInTime(key, method, path, body, attemptsLeft - 1);
}

/** Reads the same list again and again; answers how often. */
async function readUntil(signal: AbortSignal, path: string, rowsMin: number): Promise<number> {
  let reads = 0;
  while (!signal.aborted) {
    const { status, text, json } = await callInTime(wide.key, 'GET', path);
    assert.equal(status, 200, text);
    const rows: unknown[] = Array.isArray(json) ? json : json.traces;
    assert.ok(rows.length >= rowsMin, `${rows.length} rows`);
    reads += 1;
  }
  return reads;
}

/** Starts a program that rolls up traces of these teams until it is told to stop. Returns how many rolls it did. */
function rollUntil(signal: AbortSignal, teamIds: readonly string[]): Promise<number> {
  const program = fileURLToPath(new URL('../support/roll-without-end.ts', import.meta.url));
  const child = spawn(process.execPath, [program, database, ...teamIds], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let stdout = '';
  child.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
  signal.addEventListener('abort', () => child.kill('SIGTERM'));
  return new Promise((resolve, reject) => {
    child.once('close', (code) =>
      code === 0 ? resolve(Number(stdout)) : reject(new Error(`a roller ended with ${code}`)),
    );
  });
}
