import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { limits } from '../../src/limits.ts';
import {
  chatAttributes,
  encode,
  encodings,
  hexId,
  spanOf,
  spansRequest,
  typeOf,
} from '../support/otlp.ts';
import type { OtlpSpan, Plain } from '../support/otlp.ts';
import { startTestService } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';
import * as http from './helpers.ts';

/** The texts of one trace are bounded by the limit of a body of `POST /traces`, whichever way they come in. */
const bytesMax = 100_000;
const reason = `its texts are longer than ${bytesMax} bytes`;

let service: TestService;
before(async () => {
  const flags = { 'log-level': 'silent', 'body-limit': String(bytesMax) };
  service = await startTestService({ flags });
});
after(() => service.stop());

const spanWith = (own: Readonly<Record<string, Plain>>, model: string): OtlpSpan =>
  spanOf({ attributes: chatAttributes({ 'gen_ai.request.model': model, ...own }) });

/** Of 🙂 only a quarter as many characters fit. */
const spans = [
  spanWith({ 'input.value': 'x'.repeat(bytesMax) }, 'as long as possible'),
  spanWith({ 'input.value': 'x'.repeat(bytesMax + 1) }, 'too long'),
  spanWith({ 'input.value': 'x', 'output.value': '🙂'.repeat(bytesMax / 4) }, 'both too long'),
  // Less than half of the limit in protobuf.
  spanWith({ 'input.value': Array<Plain>(20_000).fill(false) }, 'too long as JSON'),
  spanWith({}, 'short'),
];

async function modelsOf({ key }: KeyHolder): Promise<string[]> {
  const { json } = await service.call(key, 'GET', '/traces?limit=100');
  return json.traces.map(({ model }: { model: string }) => model).toReversed();
}

for (const encoding of encodings) {
  test(`OTLP as ${encoding}: a call whose texts are too long is rejected with the reason, and the others are stored`, async () => {
    const holder = await service.keyFor();
    const answer = await http.send(service.url, {
      method: 'POST',
      path: '/v1/traces',
      headers: { ...typeOf(encoding), ...http.bearer(holder.key) },
      body: encode(encoding, spansRequest(spans)),
    });
    assert.equal(answer.status, 200, answer.text);
    assert.ok(answer.text.includes(`3 of 5 spans were rejected: ${reason} (3)`), answer.text);
    assert.deepEqual(await modelsOf(holder), ['as long as possible', 'short']);
  });
}

test('LiteLLM: the same', async () => {
  const holder = await service.keyFor();
  const payload = (model: string, messages: unknown) => ({
    id: `chatcmpl-${hexId(8)}`,
    call_type: 'completion',
    model,
    messages,
    prompt_tokens: 1,
  });
  const answer: Answer = await service.call(holder.key, 'POST', '/ingest/litellm', [
    payload('as long as possible', 'x'.repeat(bytesMax)),
    payload('too long', 'x'.repeat(bytesMax + 1)),
    payload('too long as JSON', [{ content: '"'.repeat(bytesMax / 2) }]),
    payload('short', 'x'),
  ]);
  const { stored, rejected, reasons } = answer.json;
  assert.deepEqual([stored, rejected, reasons], [2, 2, [reason]]);
  assert.deepEqual(await modelsOf(holder), ['as long as possible', 'short']);
});

test('reports of one call that are joined are not longer together', async () => {
  const holder = await service.keyFor();
  const [traceId, outer] = [hexId(16), hexId(8)];
  const half = 0.6 * bytesMax;
  const inner = spanOf({
    traceId,
    parentSpanId: outer,
    attributes: chatAttributes({ 'input.value': 'i'.repeat(half) }),
  });
  const around = spanOf({
    traceId,
    spanId: outer,
    durationMs: 900,
    attributes: chatAttributes({ 'output.value': 'o'.repeat(half), 'user.id': 'u1' }),
  });
  const request = spansRequest([inner]);
  request.resourceSpans.push(...spansRequest([around], undefined, 'framework').resourceSpans);
  const answer = await service.call(holder.key, 'POST', '/v1/traces', request);
  assert.deepEqual([answer.status, answer.text], [200, '{}']);
  const { json } = await service.call(holder.key, 'GET', '/traces');
  const [trace, ...others] = json.traces;
  assert.deepEqual([others.length, trace.user_identifier], [0, 'u1']);
  const texts = [trace.input, trace.output].filter((text) => text !== null);
  assert.deepEqual(
    texts.map((text: string) => text.length),
    [half],
  );
});

test('by default the limit is that of the body of POST /traces', () => {
  assert.equal(limits.bodyBytesMax, 5 * 1024 * 1024);
});
