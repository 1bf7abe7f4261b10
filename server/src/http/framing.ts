import type { IncomingMessage } from 'node:http';
import { fail } from '../errors.ts';

/**
 * Rejects requests that a proxy and this server could interpret differently: the proxy may check one of two values while this server
 * uses the other. The connection is closed after the reply.
 */
export function refuseAmbiguousFraming({
  httpVersion,
  headers,
  rawHeaders,
}: IncomingMessage): void {
  refuseRepeatedHeaders(rawHeaders);
  if (headers.host === undefined && httpVersion === '1.1') refuse(exactlyOne('Host'));
  const transferEncoding = headers['transfer-encoding'];
  if (transferEncoding === undefined) return;
  if (httpVersion === '1.0') refuse('HTTP/1.0 does not support Transfer-Encoding.');
  refuseOtherCodings(transferEncoding);
}

/** Headers that a request may have only once. Each name has another length, so most headers are skipped without reading them. */
const singleHeaders: { shown: string; lower: string; bit: number }[] = [];
for (const shown of [
  'Host',
  'Authorization',
  'Content-Type',
  'Content-Length',
  'Content-Encoding',
  'Idempotency-Key',
]) {
  singleHeaders[shown.length] = { shown, lower: shown.toLowerCase(), bit: 1 << shown.length };
}

/** Node keeps the first of some repeated headers and joins others, so this reads the raw list, which has names at even indexes. */
function refuseRepeatedHeaders(rawHeaders: readonly string[]): void {
  let seen = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const single = singleHeaders[name.length];
    // Most are spelled in one of two ways, and comparing is faster than changing the case.
    const isSingle =
      single &&
      (name === single.shown || name === single.lower || name.toLowerCase() === single.lower);
    if (!isSingle) continue;
    if ((seen & single.bit) !== 0) refuse(exactlyOne(single.shown));
    seen |= single.bit;
  }
}

function exactlyOne(name: string): string {
  return `Send exactly one "${name}" header.`;
}

/** Node's parser accepts any codings before a final `chunked` and does not decode them. */
function refuseOtherCodings(transferEncoding: string): void {
  const codings = transferEncoding.toLowerCase().split(',');
  const others = codings.slice(0, -1).map((coding) => coding.trim());
  if (others.length === 0) return;
  if (others.includes('chunked')) refuse('"chunked" may appear only once in Transfer-Encoding.');
  fail('unsupported_transfer_encoding', { headers: { connection: 'close' } });
}

function refuse(say: string): never {
  return fail('malformed_request', { say, headers: { connection: 'close' } });
}
