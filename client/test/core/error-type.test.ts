import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorType } from '../../src/error-type.ts';

class APIConnectionError extends Error {}
class APIConnectionTimeoutError extends APIConnectionError {}
class APIUserAbortError extends Error {}

const failure = (fields: object, cause?: unknown): Error =>
  Object.assign(new Error('failed', { cause }), fields);
const loop = failure({});
loop.cause = loop;

const table: [what: string, error: unknown, type: string | undefined][] = [
  ['a status', failure({ status: 429, type: 'tokens', code: 'rate_limit_exceeded' }), 'rate_limit'],
  ['a status of the AI SDK', failure({ statusCode: 401 }), 'authentication'],
  ['an unusual status of the caller', failure({ status: 409 }), 'invalid_request'],
  ['an unusual status of the provider', failure({ status: 599 }), 'server_error'],
  ['a gateway timeout', failure({ status: 504 }), 'timeout'],
  [
    'a code that says more than the status',
    failure({ status: 429, code: 'insufficient_quota' }),
    'insufficient_quota',
  ],
  [
    'a code in the body of the reply',
    failure({ status: 400, error: { code: 'context_length_exceeded' } }),
    'context_length_exceeded',
  ],
  [
    'a type in the body of the reply',
    failure({ error: { type: 'error', error: { type: 'overloaded_error' } } }),
    'overloaded',
  ],
  ['an error event of a stream', { type: 'api_error', message: 'x' }, 'server_error'],
  ['a code without a status', { code: 'server_error', message: 'x' }, 'server_error'],
  ['a timeout of the SDK', new APIConnectionTimeoutError('Request timed out.'), 'timeout'],
  ['a timeout of a signal', new DOMException('x', 'TimeoutError'), 'timeout'],
  [
    'a timeout as the cause of a failed connection',
    new APIConnectionError('x', {
      cause: failure({}, failure({ code: 'UND_ERR_HEADERS_TIMEOUT' })),
    }),
    'timeout',
  ],
  ['an abort of the SDK', new APIUserAbortError('Request was aborted.'), 'aborted'],
  ['an abort of a signal', new DOMException('x', 'AbortError'), 'aborted'],
  ['a failed connection of the SDK', new APIConnectionError('Connection error.'), 'connection'],
  ['a failed connection as a cause', failure({}, failure({ code: 'ECONNREFUSED' })), 'connection'],
  [
    'a code in the body of the reply, as the AI SDK keeps it',
    failure({ statusCode: 429, data: { error: { code: 'insufficient_quota' } } }),
    'insufficient_quota',
  ],
  [
    'a failed connection of an older fetch',
    failure({ type: 'system', code: 'ECONNREFUSED' }),
    'connection',
  ],
  ['an unreachable host', failure({}, failure({ code: 'EHOSTUNREACH' })), 'connection'],
  ['an error of the app', new TypeError('x is not a function'), undefined],
  ['a success that was thrown', failure({ status: 200 }), undefined],
  ['a text', 'timeout', undefined],
  ['nothing', undefined, undefined],
  ['a type that is not a word', failure({ type: 'Some text: with a prompt', code: 7 }), undefined],
  ['an error that is its own cause', loop, undefined],
];

for (const [what, error, type] of table) {
  test(`${what} is ${type ?? 'of no known type'}`, () => assert.equal(errorType(error), type));
}
