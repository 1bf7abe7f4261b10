import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { needProgram } from '../../server/test/support/debian.ts';
import { runProgram } from './children.ts';

/** The load generator is wrk: one of its threads can saturate every server here and uses little of the second core. */
export const generator = 'wrk';

export interface Request {
  method: 'GET' | 'POST';
  path: string;
  /** The API key. */
  key: string;
  /** JSON, or protobuf as bytes. Every `freshId` in it is replaced, with each request by another text. */
  body?: string | Buffer;
}

export const freshId = '@@@@@@';

/** Requests that are sent repeatedly, one after the other. wrk reads them from a file. */
export interface RequestFile {
  path: string;
}

export interface LoadOptions {
  connections: number;
  seconds: number;
}

export interface Load {
  requests: number;
  perSecond: number;
  p50Us: number;
  p99Us: number;
}

const script = fileURLToPath(new URL('load.lua', import.meta.url));

export function refuseWithoutGenerator(): void {
  const missing = needProgram(generator);
  if (missing !== null) throw new Error(`The bench ${missing}.`);
}

export function writeRequests(path: string, requests: readonly Request[]): RequestFile {
  const lines = requests.map(({ method, path: target, key, body = '' }) => {
    const text = typeof body === 'string' ? body : `hex:${body.toString('hex')}`;
    return `${method}\t${target}\t${key}\t${text}`;
  });
  writeFileSync(path, `${lines.join('\n')}\n`);
  return { path };
}

/** Sends requests for some seconds and counts the replies. A failed request makes the measurement useless, so it ends the bench. */
export async function fire(
  url: string,
  requests: RequestFile,
  { connections, seconds }: LoadOptions,
): Promise<Load> {
  const printed = await runProgram(generator, [
    '-t1',
    `-c${connections}`,
    `-d${seconds}s`,
    '--timeout',
    '10s',
    '-s',
    script,
    url,
    '--',
    requests.path,
    // No other run begins with this number.
    String(Date.now() % 36 ** freshId.length),
  ]);
  const line = printed.split('\n').find((text) => text.startsWith('{'));
  if (line === undefined) throw new Error(`${generator} printed no result: ${printed}`);
  const result = JSON.parse(line) as {
    requests: number;
    seconds: number;
    failed: number;
    p50Us: number;
    p99Us: number;
  };
  if (result.failed > 0) throw new Error(`${result.failed} requests failed at ${url}`);
  return {
    requests: result.requests,
    perSecond: result.requests / result.seconds,
    p50Us: result.p50Us,
    p99Us: result.p99Us,
  };
}
