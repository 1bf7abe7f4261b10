import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

const committed = new URL('../../../docs/openapi.json', import.meta.url);
let service: TestService;

before(async () => {
  service = await startTestService();
});
after(() => service.stop());

test('docs/openapi.json is what the service serves', async () => {
  const { status, json } = await service.call(null, 'GET', '/openapi.json');
  assert.equal(status, 200);
  assert.deepEqual(json, JSON.parse(readFileSync(committed, 'utf8')), 'run: npm run openapi');
});

test('the document is OpenAPI 3.1 and lists every endpoint', async () => {
  const { json } = await service.call(null, 'GET', '/openapi.json');
  assert.match(json.openapi, /^3\.1\./);
  const endpoints = Object.entries(json.paths as Record<string, object>)
    .flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method} ${path}`))
    .sort();
  assert.deepEqual(endpoints, [
    'get /analytics/by-environment',
    'get /analytics/by-feature',
    'get /analytics/by-model',
    'get /analytics/by-provider',
    'get /analytics/by-user',
    'get /analytics/daily',
    'get /analytics/overview',
    'get /analytics/query',
    'get /traces',
    'get /traces/{trace_id}',
    'get /traces/{trace_id}/cost',
    'post /ingest/litellm',
    'post /traces',
    'post /traces/batch',
    'post /v1/logs',
    'post /v1/metrics',
    'post /v1/traces',
  ]);
});

test('every reply in the document is described in our words', () => {
  assert.doesNotMatch(readFileSync(committed, 'utf8'), /Default Response/);
});

test('the paths of the document do not contain the base path, even one that is also a path', async (t) => {
  const moved = await startTestService({ flags: { 'base-path': '/traces' } });
  t.after(() => moved.stop());
  const { json } = await moved.call(null, 'GET', '/openapi.json');
  assert.deepEqual(json.servers, [{ url: '/traces' }]);
  const { paths } = JSON.parse(readFileSync(committed, 'utf8')) as { paths: object };
  assert.deepEqual(json.paths, paths);
});

test('replies hold exactly the fields that the document promises', async () => {
  const { key } = await service.keyFor();
  const document = (await service.call(null, 'GET', '/openapi.json')).json;
  const ajv = new Ajv2020({ strict: false });
  formats.default(ajv);
  ajv.addSchema({ $id: 'api', components: document.components });
  const body = {
    model: 'm',
    input: 'i',
    output: 'o',
    latency_ms: 1,
    cost_usd: 0.5,
    feature_name: 'f',
    user_identifier: 'u',
    environment: 'e',
    provider: 'p',
  };
  const posted = await service.call(key, 'POST', '/traces', body);
  const batch = { traces: [body, { model: '' }, { model: 'm' }] };
  const [whole, bare] = [
    await service.call(key, 'POST', '/traces/batch', batch),
    await service.call(key, 'POST', '/traces/batch?omit=input,output', batch),
  ];
  assert.deepEqual([whole.json.rejected.length, bare.json.traces.length], [1, 2]);
  const replies: [string, string, unknown][] = [
    ['/traces', 'post', posted.json],
    ['/traces/batch', 'post', whole.json],
    ['/traces/batch', 'post', bare.json],
  ];
  for (const path of [
    '/traces',
    '/analytics/overview',
    '/analytics/by-model',
    '/analytics/by-feature',
    '/analytics/by-user',
    '/analytics/by-environment',
    '/analytics/by-provider',
    '/analytics/daily',
    '/analytics/query?group_by=model,error_type&interval=day&fill=zero&limit=1',
    '/analytics/query?user_identifier=nobody',
  ]) {
    const { json } = await service.call(key, 'GET', path);
    replies.push([path.replace(/\?.*/, ''), 'get', json]);
  }
  replies.push([
    '/traces/{trace_id}',
    'get',
    (await service.call(key, 'GET', `/traces/${posted.json.id}`)).json,
  ]);
  const priced = { ...body, model: 'gpt-4o', provider: 'openai', prompt_tokens: 5, cost_usd: null };
  for (const sent of [body, priced]) {
    const { id } = (await service.call(key, 'POST', '/traces', sent)).json;
    const { json } = await service.call(key, 'GET', `/traces/${id}/cost`);
    replies.push(['/traces/{trace_id}/cost', 'get', json]);
  }
  for (const [path, method, json] of replies) {
    const success = method === 'post' ? '201' : '200';
    const { schema } = document.paths[path][method].responses[success].content['application/json'];
    const validate = ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"api#/')));
    assert.ok(validate(json), `${method} ${path}: ${ajv.errorsText(validate.errors)}`);
  }
  // additionalProperties is false in each, so that an extra field would fail as well.
  assert.equal(document.components.schemas.Trace.additionalProperties, false);
  assert.equal(document.components.schemas.Overview.additionalProperties, false);
});
