import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startTestService } from '../support/service.ts';
import type { KeyHolder, TestService } from '../support/service.ts';

let service: TestService;
let holder: KeyHolder;

before(async () => {
  service = await startTestService();
  holder = await service.keyFor();
});
after(() => service.stop());

const secret = 'a secret prompt';

async function post(fields: object, headers: Record<string, string> = {}) {
  const posted = await service.call(
    holder.key,
    'POST',
    '/traces',
    { model: 'm', ...fields },
    headers,
  );
  assert.equal(posted.status, 201);
  return posted;
}

type Column = 'input' | 'output' | 'error_message' | 'metadata';

/** Other bytes instead of the stored ones: by default, bytes that are not text. */
async function damage(id: string, column: Column, hex = '61ff62'): Promise<void> {
  const where =
    service.store === 'sqlite'
      ? `key = (select key from traces where hex(id) = upper('${id.replaceAll('-', '')}'))`
      : `(team_id, seq) = (select team_id, seq from traces where id = '${id}')`;
  const bytes = service.store === 'sqlite' ? `x'${hex}'` : `'\\x${hex}'`;
  await service.sql(`update trace_payloads set ${column} = ${bytes} where ${where}`);
}

test('a damaged trace is a marked entry of its page, and its neighbours are whole', async () => {
  const posted = [];
  for (let i = 0; i < 3; i++)
    posted.push((await post({ input: `${i} ${secret}`, output: 'o' })).json);
  await damage(posted[1].id, 'input');
  const page = await service.call(holder.key, 'GET', '/traces');
  assert.equal(page.status, 200);
  const marked = { ...posted[1], input: null, output: null, damaged: ['input', 'output'] };
  assert.deepEqual(page.json.traces, [posted[2], marked, posted[0]]);
  assert.equal(page.json.total, 3);
  const bare = await service.call(holder.key, 'GET', '/traces?omit=input,output');
  assert.ok(bare.json.traces.every((trace: object) => !('damaged' in trace)));
});

test('metadata that is no longer JSON is marked, with previews too, and other entries are whole', async () => {
  const { key } = await service.keyFor();
  const posted = [];
  for (let i = 0; i < 3; i++) {
    const body = { model: 'm', input: `${i}`, metadata: { tier: 'gold' } };
    posted.push((await service.call(key, 'POST', '/traces', body)).json);
  }
  await damage(posted[1].id, 'metadata', Buffer.from('{"tier"z"gold"}').toString('hex'));
  for (const query of ['?preview_chars=100', '?omit=output', '?omit=input&preview_chars=9', '']) {
    const page = await service.call(key, 'GET', `/traces${query}`);
    assert.equal(page.status, 200, query);
    const [last, marked, first] = page.json.traces;
    assert.deepEqual([first.metadata, last.metadata], [{ tier: 'gold' }, { tier: 'gold' }], query);
    assert.ok(marked.damaged.includes('metadata') && !('metadata' in marked), query);
  }
});

test('a page that is streamed has its damaged entries too', async () => {
  const { key } = await service.keyFor();
  const ids: string[] = [];
  for (let i = 0; i < 4; i++) {
    const { json } = await service.call(key, 'POST', '/traces', {
      model: `m${i}`,
      input: 'x',
      output: `${i}`.repeat(700_000),
    });
    ids.push(json.id);
  }
  await damage(ids[1] ?? '', 'output');
  const page = await service.call(key, 'GET', '/traces?limit=100');
  assert.deepEqual(
    page.json.traces.map((trace: { damaged?: string[] }) => trace.damaged),
    [undefined, undefined, ['input', 'output'], undefined],
  );
});

test('GET of a damaged trace returns its own error code, which names the fields and no content', async () => {
  const { json: posted } = await post({ input: secret, error_message: `${secret} again` });
  await damage(posted.id, 'input');
  await damage(posted.id, 'error_message');
  const { status, json, text } = await service.call(holder.key, 'GET', `/traces/${posted.id}`);
  assert.deepEqual([status, json.code], [500, 'trace_damaged']);
  assert.match(json.detail, /input, error_message/);
  assert.ok(!text.includes('secret') && !service.log().includes('secret'));
  assert.ok(service.log().includes(`trace ${posted.id}: damaged input, error_message`));
});

test('a retry with the same Idempotency-Key finds its damaged trace and stores nothing', async () => {
  const headers = { 'idempotency-key': 'damaged-1' };
  const first = await post({ input: 'once' }, headers);
  await damage(first.json.id, 'input');
  const again = await post({ input: 'once' }, headers);
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  assert.deepEqual(again.json, { ...first.json, input: null, damaged: ['input'] });
});
