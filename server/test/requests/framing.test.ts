import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { startTestService } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';
import { assertProblem, sendBytes } from '../http/helpers.ts';

let service: TestService;
let team: KeyHolder;

before(async () => {
  service = await startTestService();
  team = await service.keyFor();
});
after(() => service.stop());

const body = '{"model":"m"}';

/** A valid write with these header lines added. The connection stays open unless the server closes it. */
function post(headers: readonly string[], bytes = body): Promise<Answer> {
  const lines = [
    'POST /traces HTTP/1.1',
    'host: x',
    `authorization: Bearer ${team.key}`,
    'content-type: application/json',
    ...headers,
  ];
  return sendBytes(service.url, `${lines.join('\r\n')}\r\n\r\n${bytes}`);
}

const length = `content-length: ${body.length}`;

async function assertNothingStored(work: () => Promise<void>): Promise<void> {
  const total = async (): Promise<number> =>
    (await service.call(team.key, 'GET', '/traces?limit=1')).json.total;
  const before = await total();
  await work();
  assert.equal(await total(), before);
}

describe('a header that must be single is refused when it comes twice, by name, and the connection is closed', () => {
  const rows: Record<string, () => readonly string[]> = {
    Authorization: () => [length, `authorization: Bearer ${team.key}`],
    'Content-Type': () => [length, 'Content-Type: application/json'],
    'Content-Encoding': () => [length, 'content-encoding: gzip', 'CONTENT-ENCODING: identity'],
    'Idempotency-Key': () => [length, 'idempotency-key: a', 'idempotency-key: b'],
    Host: () => [length, 'host: y'],
  };
  for (const [name, headers] of Object.entries(rows)) {
    test(name, () =>
      assertNothingStored(async () => {
        const answer = await post(headers());
        assertProblem(answer, 'malformed_request');
        assert.equal(answer.headers.get('connection'), 'close');
        assert.ok(answer.json.detail.includes(`"${name}"`), answer.json.detail);
      }),
    );
  }
  // Node's parser refuses this one, so the answer cannot name the header.
  test('Content-Length', () =>
    assertNothingStored(async () => {
      assertProblem(await post([length, length]), 'malformed_request');
    }));
});

test('a second wrong key beside a valid one is refused whichever comes first', async () => {
  const wrong = 'authorization: Bearer wrong';
  const valid = `authorization: Bearer ${team.key}`;
  for (const keys of [
    [wrong, valid],
    [valid, wrong],
  ]) {
    const lines = ['GET /traces HTTP/1.1', 'host: x', ...keys, '', ''];
    assertProblem(await sendBytes(service.url, lines.join('\r\n')), 'malformed_request');
  }
});

test('headers that may repeat are accepted twice', async () => {
  const answer = await post([
    length,
    'connection: close',
    'accept: a/b',
    'accept: c/d',
    'x: 1',
    'x: 2',
  ]);
  assert.equal(answer.status, 201, answer.text);
});

describe('a transfer coding besides chunked is 501, nothing is stored, and the connection is closed', () => {
  const chunk = (bytes: string): string => `${bytes.length.toString(16)}\r\n${bytes}\r\n0\r\n\r\n`;
  const packed = gzipSync(body).toString('latin1');
  const rows: Record<string, [headers: readonly string[], bytes: string]> = {
    'gzip, chunked': [['transfer-encoding: gzip, chunked'], chunk(packed)],
    'GZIP,Chunked': [['Transfer-Encoding: GZIP,Chunked'], chunk(packed)],
    'two headers': [['transfer-encoding: gzip', 'transfer-encoding: chunked'], chunk(packed)],
    'deflate of a plain body': [['transfer-encoding: deflate, chunked'], chunk(body)],
    'identity, chunked': [['transfer-encoding: identity, chunked'], chunk(body)],
  };
  for (const [what, [headers, bytes]] of Object.entries(rows)) {
    test(what, () =>
      assertNothingStored(async () => {
        const answer = await post(headers, bytes);
        assertProblem(answer, 'unsupported_transfer_encoding');
        assert.equal(answer.headers.get('connection'), 'close');
      }),
    );
  }
  test('chunked alone, in any case, is read', async () => {
    const answer = await post(['Transfer-Encoding: Chunked', 'connection: close'], chunk(body));
    assert.equal(answer.status, 201, answer.text);
  });
  test('chunked twice is malformed', async () => {
    const answer = await post(['transfer-encoding: chunked, chunked'], chunk(chunk(body)));
    assertProblem(answer, 'malformed_request');
  });
  test('the log does not call it a failure of the service', () => {
    assert.doesNotMatch(service.log(), /"request failed"/);
  });
});
