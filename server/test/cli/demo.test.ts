import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import {
  allTraces,
  assertRefused,
  call,
  inParallel,
  postTrace,
  startServer,
  toolInFolder,
  totalOf,
} from './helpers.ts';
import type { NewKeyJson, TraceJson } from './helpers.ts';

const tool = toolInFolder({ after });
const server = await startServer({ after }, tool);

interface DemoJson {
  team_id: string;
  team: string;
  traces: number;
  seconds: number;
}

function demo(team: string, ...flags: string[]): Promise<DemoJson> {
  return tool.json<DemoJson>('demo', '--team', team, ...flags);
}

async function keyOf(team: string): Promise<string> {
  return (await tool.json<NewKeyJson>('keys', 'create', '--team', team)).key;
}

/** Newest first, so each trace must be later than the one behind it. */
function assertTimeFollowsSequence(traces: readonly TraceJson[]): void {
  for (const [i, { created_at }] of traces.entries()) {
    const older = traces[i + 1]?.created_at ?? '';
    assert.ok(created_at > older, `${created_at} comes after ${older}`);
  }
}

function startOf({ started_at }: TraceJson): string {
  return started_at ?? assert.fail('a trace has no started_at');
}

const dayMs = 86_400_000;

test('demo stores exactly as many traces as asked for, spread over the days', async () => {
  const beforeMs = Date.now();
  const made = await demo('spread', '--count', '1234', '--days', '30');
  assert.deepEqual([made.team, made.traces], ['spread', 1234]);
  const key = await keyOf('spread');
  const traces = await allTraces(server.url, key);
  assert.equal(await totalOf(server.url, key), 1234);
  assert.equal(traces.length, 1234);
  assert.equal(new Set(traces.map(({ id }) => id)).size, 1234);
  assert.ok(traces.every(({ team_id }) => team_id === made.team_id));
  assertTimeFollowsSequence(traces);

  const starts = traces.map((trace) => Date.parse(startOf(trace)));
  assert.ok(Math.max(...starts) <= Date.now(), 'a trace lies in the future');
  assert.ok(Math.min(...starts) >= beforeMs - 30 * dayMs - 1, 'a trace is older than asked for');
  const days = new Set(traces.map((trace) => startOf(trace).slice(0, 10)));
  assert.ok(days.size === 30 || days.size === 31, `they lie on ${days.size} days`);

  const daily = await call<{ date: string; call_count: number; total_cost_usd: number }[]>(
    `${server.url}/analytics/daily`,
    key,
  );
  assert.equal(daily.body.length, 7);
  for (const { date, call_count, total_cost_usd } of daily.body) {
    const ofDay = traces.filter((trace) => startOf(trace).startsWith(date)).length;
    assert.equal(call_count, ofDay, date);
    // Just after midnight today may still be empty.
    const isYoung = date === daily.body[6]?.date && new Date().getUTCHours() < 2;
    assert.ok(isYoung || (call_count > 0 && total_cost_usd > 0), `nothing on ${date}`);
  }
});

test('the demo looks like a product: several models and features, some errors', async () => {
  await demo('varied', '--count', '2000');
  const key = await keyOf('varied');
  const [models, features, overview] = await Promise.all([
    call<{ model: string; call_count: number }[]>(`${server.url}/analytics/by-model`, key),
    call<{ feature_name: string }[]>(`${server.url}/analytics/by-feature`, key),
    call<{ error_count: number; total_calls: number }>(`${server.url}/analytics/overview`, key),
  ]);
  assert.ok(models.body.length >= 3);
  assert.ok(features.body.length >= 3);
  assert.equal(
    models.body.reduce((sum, { call_count }) => sum + call_count, 0),
    2000,
  );
  const { error_count, total_calls } = overview.body;
  assert.ok(error_count > 0 && error_count < total_calls / 10, `${error_count} errors`);
});

test('the demo has several environments and providers, conversations, runs and cached tokens', async () => {
  await demo('realistic', '--count', '2000');
  const traces = await allTraces(server.url, await keyOf('realistic'));
  const valuesOf = (name: keyof TraceJson) => new Set(traces.map((trace) => trace[name]));
  assert.ok(valuesOf('environment').size >= 3);
  assert.ok(valuesOf('provider').size >= 3);
  for (const name of ['session_id', 'run_id'] as const) {
    const threads = Object.entries(Object.groupBy(traces, (trace) => trace[name] ?? ''));
    const named = threads.filter(([id]) => id !== '').map(([, calls]) => calls ?? []);
    assert.ok(named.length > 5, `${named.length} with a ${name}`);
    assert.ok(
      named.some((calls) => calls.length > 2),
      `several calls with one ${name}`,
    );
    for (const calls of named) {
      assert.equal(new Set(calls.map(({ user_identifier }) => user_identifier)).size, 1);
    }
  }
  const cached = traces.filter(({ cache_read_tokens }) => (cache_read_tokens ?? 0) > 0);
  assert.ok(cached.length > 100 && cached.length < 1_500, `${cached.length} with cached tokens`);
  assert.ok(traces.some(({ cache_write_tokens }) => (cache_write_tokens ?? 0) > 0));
  for (const { status, error_type } of traces) {
    assert.equal(error_type !== undefined, status === 'error');
  }
});

test('the same seed makes the same traces, another seed makes others', async () => {
  const content = async (team: string, seed: string) => {
    await demo(team, '--count', '300', '--seed', seed);
    const traces = await allTraces(server.url, await keyOf(team));
    return traces.map(
      ({ id: _id, team_id: _team, created_at: _time, started_at: _start, ...rest }) => rest,
    );
  };
  const [one, same, other] = await Promise.all([
    content('seed-one', '7'),
    content('seed-same', '7'),
    content('seed-other', '8'),
  ]);
  assert.equal(one.length, 300);
  assert.ok(one.every(({ model, cost_usd }) => model !== '' && (cost_usd ?? 0) > 0));
  assert.deepEqual(same, one);
  assert.notDeepEqual(other, one);
});

test('a second run on the same team spreads its traces over the same days', async () => {
  await demo('twice', '--count', '150', '--days', '10');
  await demo('twice', '--count', '150', '--days', '30');
  const key = await keyOf('twice');
  assert.equal((await postTrace(server.url, key)).status, 201);
  const traces = await allTraces(server.url, key);
  assert.equal(traces.length, 301);
  assert.equal(traces[0]?.model, 'test-model');
  assertTimeFollowsSequence(traces);
  const [second, first] = [traces.slice(1, 151), traces.slice(151)];
  const earliest = (run: TraceJson[]) =>
    Math.min(...run.map((trace) => Date.parse(startOf(trace))));
  const daysApart = (earliest(first) - earliest(second)) / dayMs;
  assert.ok(daysApart > 19 && daysApart < 21, `${daysApart} days`);
});

test('on a team that is being written to, time stays in the order of the sequence', async () => {
  const key = await keyOf('busy');
  let isWriting = true;
  let stored = 0;
  const writer = (async () => {
    while (isWriting) {
      assert.equal((await postTrace(server.url, key)).status, 201);
      stored += 1;
    }
  })();
  await demo('busy', '--count', '3000', '--days', '30');
  isWriting = false;
  await writer;
  assert.ok(stored > 0);
  const traces = await allTraces(server.url, key);
  assert.equal(traces.length, 3000 + stored);
  assertTimeFollowsSequence(traces);
});

/** Signs in with a link and returns the name of the team. */
async function teamBehind(link: string): Promise<string | undefined> {
  const [url, code] = link.split('/#code=');
  const response = await fetch(`${url}/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  });
  return ((await response.json()) as { team?: { name: string } }).team?.name;
}

const place = ['--port', new URL(server.url).port];

test('without flags it fills the team "demo" with 10000 traces and says so', async () => {
  const { code, stdout, stderr } = await tool.run('demo');
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  assert.match(stdout, /^Stored 10000 traces for the team "demo" in [0-9.]+ s\.\n/);
  assert.equal(await totalOf(server.url, await keyOf('demo')), 10_000);
});

test('beside a running server it prints a one-time link that opens the team, and no key', async () => {
  const args = ['demo', '--team', 'linked', '--count', '20', ...place];
  const { code, stdout } = await tool.run(...args);
  assert.equal(code, 0);
  const link = /^ {2}(\S+)$/m.exec(stdout)?.[1] ?? '';
  assert.ok(link.startsWith(`${server.url}/#code=ttc_`), stdout);
  assert.doesNotMatch(stdout, /tt_/);
  assert.equal(await teamBehind(link), 'linked');
  assert.equal(await teamBehind(link), undefined, 'the link works once');
  const { link: second } = await tool.json<DemoJson & { link: string }>(...args);
  assert.equal(await teamBehind(second), 'linked');
  const keys = await tool.json<{ scope: string }[]>('keys', 'list', '--team', 'linked');
  assert.deepEqual(
    keys.map(({ scope }) => scope),
    ['read'],
    'a second run uses the key of the first',
  );
});

test('a server on another database gets no link, and what it was asked is of no use', async (t) => {
  const other = toolInFolder(t);
  const seen: string[] = [];
  const stranger = createServer((request, response) => {
    request.on('data', (data: Buffer) => seen.push(data.toString()));
    request.on('end', () => response.writeHead(404).end());
  });
  await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve));
  t.after(() => stranger.close());
  const { port } = stranger.address() as AddressInfo;
  const args = ['demo', '--count', '5', '--port', String(port)];
  assert.equal((await other.json<{ link: string | null }>(...args)).link, null);
  assert.equal(
    (await other.json<{ link: string | null }>('demo', '--count', '5', ...place)).link,
    null,
  );
  const { code } = JSON.parse(seen.join('')) as { code: string };
  const own = await startServer(t, other);
  assert.equal(await teamBehind(`${own.url}/#code=${code}`), undefined);
});

test('bad flags are refused before anything is stored', async () => {
  const mistakes: [string[], RegExp][] = [
    [['--count', '0'], /--count/],
    [['--count=-5'], /--count/],
    [['--count', '1.5'], /--count/],
    [['--count', '100000001'], /--count/],
    [['--days', '3651'], /--days/],
    [['--seed', 'x'], /--seed/],
    [['--team='], /--team/],
    [['--url', 'nonsense'], /--url/],
    [['--port', '0'], /--url/],
  ];
  await inParallel(mistakes, async ([flags, words]) => {
    assertRefused(await tool.run('demo', '--team', 'refused', ...flags), 1, words);
  });
  const teams = await tool.json<{ team: string }[]>('teams', 'list');
  assert.ok(teams.every(({ team }) => team !== 'refused'));
});

test('after all of this everything adds up', async () => {
  const { ok, differences } = await tool.json<{ ok: boolean; differences: string[] }>('verify');
  assert.ok(ok, differences.join('\n'));
});
