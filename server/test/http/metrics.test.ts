import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { generateKey } from '../../src/core/api-key.ts';
import { sentNames, traceFields } from '../../src/core/trace-fields.ts';
import { declarations } from '../../src/metrics/declarations.ts';
import { eventually } from '../support/eventually.ts';
import { parseMetrics, scrape } from '../support/metrics.ts';
import { chatAttributes, spanOf, spansRequest } from '../support/otlp.ts';
import { startTestService } from '../support/service.ts';
import type { KeyHolder, TestService } from '../support/service.ts';

const listen = { 'metrics-listen': '127.0.0.1:0' };

describe('the metrics of a service', () => {
  let service: TestService;
  let team: KeyHolder;
  before(async () => {
    service = await startTestService({ flags: listen });
    team = await service.keyFor();
  });
  after(() => service.stop());
  const post = (body: object) => service.call(team.key, 'POST', '/traces', body);
  const valueOf = async (series: string) => (await scrape(service)).value(series);

  test('requests are counted by route and status, and timed', async () => {
    const requests = 'tracetally_http_requests_total{method="POST",route="/traces",status="201"}';
    const timed = 'tracetally_http_request_duration_seconds_count{method="POST",route="/traces"}';
    const before = await scrape(service);
    for (let i = 0; i < 3; i++) assert.equal((await post({ model: 'm' })).status, 201);
    // A reply may arrive before the server has noted that it was sent.
    await eventually('three requests', 120_000, async () => {
      const now = await scrape(service);
      return now.value(requests) === before.value(requests) + 3 && now.value(timed) >= 3;
    });
    const { value } = await scrape(service);
    const bucket = (le: string) =>
      value(timed.replace('_count{', `_bucket{`).replace('}', `,le="${le}"}`));
    assert.equal(bucket('+Inf'), value(timed));
    assert.ok(bucket('10') >= bucket('0.001'));
    assert.equal(value('tracetally_traces_stored_total'), value(requests));
  });

  test('a path that does not exist is not a series of its own', async () => {
    assert.equal((await service.call(team.key, 'GET', '/secret-of-a-caller')).status, 404);
    const { text } = await eventually('the request', 120_000, async () => {
      const now = await scrape(service);
      const series = 'tracetally_http_requests_total{method="any",route="unknown",status="404"}';
      return now.value(series) === 1 && now;
    });
    assert.doesNotMatch(text, /secret-of-a-caller/);
  });

  test('refusals are counted by code', async () => {
    const invalid = 'tracetally_request_failures_total{code="invalid_input"}';
    const unknown = 'tracetally_request_failures_total{code="key_unknown"}';
    assert.equal((await post({ model: 5 })).status, 422);
    assert.equal((await service.call(generateKey(), 'GET', '/traces')).status, 401);
    assert.equal(await valueOf(invalid), 1);
    assert.equal(await valueOf(unknown), 1);
  });

  test('lookups of keys are counted', async () => {
    const lookups = (result: string) =>
      `tracetally_key_lookups_total{credential="api_key",result="${result}"}`;
    const { key } = await service.keyFor();
    const before = await scrape(service);
    for (let i = 0; i < 2; i++)
      assert.equal((await service.call(key, 'GET', '/traces')).status, 200);
    const { value } = await scrape(service);
    assert.ok(value(lookups('miss')) > before.value(lookups('miss')));
    const sum = (one: typeof before) => one.value(lookups('hit')) + one.value(lookups('miss'));
    assert.equal(sum({ ...before, value }) - sum(before), 2);
  });

  test('spans are counted by what became of them', async () => {
    const call = spanOf();
    const other = spanOf({ attributes: { 'http.method': 'GET' } });
    const body = spansRequest([call, other]);
    for (let i = 0; i < 2; i++) {
      assert.equal((await service.call(team.key, 'POST', '/v1/traces', body)).status, 200);
    }
    const { value } = await scrape(service);
    const counts = ['stored', 'duplicate', 'skipped', 'rejected'].map((result) =>
      value(`tracetally_signals_total{result="${result}"}`),
    );
    assert.deepEqual(counts, [1, 1, 2, 0]);
  });

  test('commits and rolls are counted, and the tail is empty when all is rolled up', async () => {
    await post({ model: 'm' });
    const { value } = await eventually('everything rolled up', 120_000, async () => {
      const now = await scrape(service);
      const stored = now.value('tracetally_traces_stored_total');
      const isEmpty = now.value('tracetally_rollup_tail_rows') === 0;
      return isEmpty && now.value('tracetally_rolled_rows_total') === stored && now;
    });
    const stored = value('tracetally_traces_stored_total');
    assert.ok(stored > 0);
    assert.equal(value('tracetally_commit_rows_sum'), stored);
    assert.ok(value('tracetally_commit_duration_seconds_count') > 0);
    assert.ok(value('tracetally_commit_bytes_sum') > 0);
    assert.ok(value('tracetally_roll_duration_seconds_count') > 0);
    assert.equal(value('tracetally_writes_waiting_rows'), 0);
    assert.equal(value('tracetally_store_broken'), 0);
  });

  test('the process, its memory and the delay of its event loop are shown', async () => {
    const { value, series } = await scrape(service);
    assert.ok(value('process_resident_memory_bytes') > 1_000_000);
    assert.ok(series('nodejs_eventloop_lag_p99_seconds').length === 1);
    const [build] = series('tracetally_build_info');
    assert.match(build ?? '', new RegExp(`store="${service.store}"`));
  });

  test('teams are not shown unless asked for, and every metric is documented', async () => {
    const { text } = await scrape(service);
    assert.doesNotMatch(text, new RegExp(`${team.team}|${team.teamId}`));
    const document = readFileSync(new URL('../../../docs/monitoring.md', import.meta.url), 'utf8');
    for (const { name, labels } of Object.values(declarations)) {
      assert.match(text, new RegExp(`^# TYPE ${name} `, 'm'));
      const row = `| \`${name}\` | ${labels.map((label) => `\`${label}\``).join(', ')}`;
      assert.ok(document.includes(row.trimEnd()), `docs/monitoring.md lacks ${row}`);
    }
  });
});

test('a tail that cannot be rolled up is shown, and each failure is counted', async (t) => {
  const service = await startTestService({ flags: listen });
  t.after(() => service.stop());
  const { key } = await service.keyFor();
  await service.rollupSql(
    service.store === 'sqlite'
      ? `create trigger poison before insert on rollups begin select raise(abort, 'no'); end`
      : 'alter table rollups rename to moved_away',
  );
  for (let i = 0; i < 5; i++) await service.call(key, 'POST', '/traces', { model: 'm' });
  await eventually('a failed roll', 120_000, async () => {
    const { value } = await scrape(service);
    return (
      value('tracetally_roll_failures_total') > 0 && value('tracetally_rollup_tail_rows') === 5
    );
  });
});

test('metrics never show prompts, answers, labels, users, keys, tokens, sessions or headers', async (t) => {
  const canary = 'canaryzqxj';
  const token = `${canary}-token-of-the-port`;
  const service = await startTestService({
    flags: { ...listen, 'metrics-teams': '5' },
    env: { TRACETALLY_METRICS_TOKEN: token },
  });
  t.after(() => service.stop());
  const { key, keyId, teamId } = await service.keyFor('shown-team');
  const call = async (status: number, ...request: Parameters<TestService['call']>) => {
    const answer = await service.call(...request);
    assert.equal(answer.status, status, answer.text);
    return answer;
  };
  const texts = sentNames.filter((name) => ['label', 'text'].includes(traceFields[name].kind));
  const trace = Object.fromEntries(texts.map((name) => [name, canary]));

  const headers = { 'user-agent': canary, 'idempotency-key': canary };
  await call(201, key, 'POST', '/traces', { ...trace, metadata: { [canary]: canary } }, headers);
  await call(201, key, 'POST', '/traces/batch', { traces: [trace, { latency_ms: canary }] });
  const span = spanOf({ attributes: chatAttributes({ 'user.id': canary, [canary]: canary }) });
  await call(200, key, 'POST', '/v1/traces', spansRequest([span]));
  await call(201, key, 'POST', `/traces?${canary}=1`, trace);
  await call(422, key, 'POST', '/traces', { ...trace, latency_ms: canary });
  await call(404, key, 'GET', `/traces/${canary}`);
  await call(404, key, 'DELETE', `/${canary}`);
  await call(401, canary, 'GET', '/traces');
  const session = await call(201, null, 'POST', '/session', { key });
  const cookie = /=([^;]+)/.exec(session.headers.get('set-cookie') ?? '')?.[1] ?? assert.fail();
  await call(200, key, 'GET', `/analytics/query?model=${canary}`);

  const response = await fetch(service.metricsUrl ?? '', {
    headers: { authorization: `Bearer ${token}` },
  });
  const { text } = parseMetrics(await response.text());
  assert.match(text, /tracetally_team_traces_total\{team="shown-team"\} 4\n/);
  for (const secret of [canary, key, keyId, teamId, cookie, 'tt_', service.databasePath])
    assert.ok(!text.includes(secret), secret);
});

test('a team whose name cannot be looked up is left out of a scrape until it can', async (t) => {
  const service = await startTestService({ flags: { ...listen, 'metrics-teams': '5' } });
  t.after(() => service.stop());
  const { key, team } = await service.keyFor();
  assert.equal((await service.call(key, 'POST', '/traces', { model: 'm' })).status, 201);
  await service.sql('alter table teams rename to teams_moved');
  const { value, series } = await scrape(service);
  assert.deepEqual(series('tracetally_team_traces_total'), []);
  assert.equal(value('tracetally_traces_stored_total'), 1);
  await service.sql('alter table teams_moved rename to teams');
  await eventually('the team', 120_000, async () => {
    const now = await scrape(service);
    return now.value(`tracetally_team_traces_total{team="${team}"}`) === 1;
  });
});

test('with --metrics-teams the usage of so many teams is shown, and the sum of the others', async (t) => {
  const service = await startTestService({ flags: { ...listen, 'metrics-teams': '2' } });
  t.after(() => service.stop());
  for (const name of ['first', 'sec"ond\\', 'third', 'fourth']) {
    const { key } = await service.keyFor(name);
    for (let i = 0; i < 2; i++) {
      await service.call(key, 'POST', '/traces', { model: 'm', cost_usd: 0.25 });
    }
  }
  const { value, series } = await scrape(service);
  assert.equal(series('tracetally_team_traces_total').length, 3);
  assert.equal(value('tracetally_team_traces_total{team="first"}'), 2);
  assert.equal(value('tracetally_team_cost_usd_total{team="sec\\"ond\\\\"}'), 0.5);
  assert.equal(value('tracetally_team_cost_usd_total'), 1);
});

test('with a token, metrics are sent only to its bearer', async (t) => {
  const token = 'a-token-of-20-letters';
  const service = await startTestService({
    flags: listen,
    env: { TRACETALLY_METRICS_TOKEN: token },
  });
  t.after(() => service.stop());
  const ask = (authorization?: string) =>
    fetch(service.metricsUrl ?? '', { headers: authorization ? { authorization } : {} });
  assert.equal((await ask()).status, 401);
  assert.equal((await ask(`Bearer ${token}x`)).status, 401);
  assert.equal((await ask(`Bearer ${token}`)).status, 200);
});

test('metrics are served only at their own address, at /metrics, and not at all by default', async (t) => {
  const service = await startTestService({ flags: listen });
  t.after(() => service.stop());
  const origin = new URL(service.metricsUrl ?? '').origin;
  assert.equal((await fetch(`${origin}/traces`)).status, 404);
  assert.equal((await fetch(`${origin}/metrics`, { method: 'POST' })).status, 405);
  assert.equal((await service.call(null, 'GET', '/metrics')).status, 404);
  const plain = await startTestService();
  t.after(() => plain.stop());
  assert.equal(plain.metricsUrl, null);
});
