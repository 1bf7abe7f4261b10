import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readChatRequest } from '../../src/provider-openai-chat.ts';
import { observeBody } from '../../src/wrap-body.ts';
import { beginCall } from '../../src/wrap-call.ts';
import { memoryRecorder } from '../support/memory-recorder.ts';
import { only } from '../support/side-by-side.ts';

const chunk = (content: string): string =>
  `data: ${JSON.stringify({ model: 'm', choices: [{ index: 0, delta: { content } }] })}`;

/** A response whose body comes in pieces of so many bytes, observed. */
function observedResponse(text: string, pieceBytes: number) {
  const bytes = new TextEncoder().encode(text);
  let pulls = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const from = pulls++ * pieceBytes;
        if (from >= bytes.length) controller.close();
        else controller.enqueue(bytes.slice(from, from + pieceBytes));
      },
    },
    { highWaterMark: 0 },
  );
  const recorder = memoryRecorder();
  const response = new Response(body);
  const call = beginCall(recorder, {
    model: 'm',
    input: undefined,
    labels: {},
    provider: undefined,
  });
  observeBody(recorder, response, call, readChatRequest({}).collector(), undefined);
  return { recorder, response, pulls: () => pulls };
}

for (const pieceBytes of [1, 7, 10_000]) {
  test(`events are read from chunks of ${pieceBytes} bytes, with any line ending`, async () => {
    const text = `: hello\n\n${chunk('Grüße ')}\n\n${chunk('aus 東京')}\r\n\r\nevent: x\ndata: [DONE]\n\n`;
    const { recorder, response } = observedResponse(text, pieceBytes);
    assert.equal(await new Response(response.body).text(), text);
    assert.equal(only(await recorder.settled(1)).output, 'Grüße aus 東京');
    assert.deepEqual(recorder.errors, []);
  });
}

test('nothing is read ahead, and the body can be read with a byte reader', async () => {
  const { recorder, response, pulls } = observedResponse(`${chunk('a')}\n\n`, 8);
  assert.equal(pulls(), 0);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader({ mode: 'byob' });
  const { value } = await reader.read(new Uint8Array(4));
  assert.deepEqual([new TextDecoder().decode(value), pulls()], ['data', 1]);
  await reader.cancel();
  assert.equal(only(await recorder.settled(1)).status, 'success');
});

test('invalid events reach the caller unchanged and are reported', async () => {
  const { recorder, response } = observedResponse('data: {odd\n\n', 100);
  assert.equal(await new Response(response.body).text(), 'data: {odd\n\n');
  assert.equal(only(await recorder.settled(1)).status, 'success');
  assert.equal(recorder.errors.length, 1);
});

test('a response without a body is recorded', async () => {
  const recorder = memoryRecorder();
  const call = beginCall(recorder, { model: 'm', input: 'q', labels: {}, provider: undefined });
  observeBody(recorder, new Response(null), call, readChatRequest({}).collector(), undefined);
  assert.equal(only(await recorder.settled(1)).input, 'q');
});
