import type { IncomingMessage } from 'node:http';
import { fail } from '../errors.ts';

/** Refuses what two servers on the way could read differently. The connection ends with the answer. */
export function refuseAmbiguousFraming({
  httpVersion,
  headers,
  rawHeaders,
}: IncomingMessage): void {
  const hosts = countHosts(rawHeaders);
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1')) {
    refuse('There must be exactly one header "Host".');
  }
  if (httpVersion === '1.0' && headers['transfer-encoding'] !== undefined) {
    refuse('HTTP/1.0 has no Transfer-Encoding.');
  }
}

function refuse(say: string): never {
  return fail('malformed_request', { say, headers: { connection: 'close' } });
}

/** Names stand at the even places. */
function countHosts(rawHeaders: readonly string[]): number {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts;
}
