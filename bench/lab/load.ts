import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { needProgram } from '../../server/test/support/debian.ts';

/** The load comes from wrk: one thread of it asks more than any server here answers, and takes little of the second core. */
export const generator = 'wrk';

export interface Request {
  method: 'GET' | 'POST';
  path: string;
  body?: string;
}

/** Requests that are sent again and again, in turn. wrk reads them from a file. */
export interface RequestFile {
  path: string;
  authorization: string;
}

export interface LoadOptions {
  connections: number;
  seconds: number;
}

export interface Load {
  perSecond: number;
  p50Us: number;
  p99Us: number;
}

const script = fileURLToPath(new URL('load.lua', import.meta.url));
const run = promisify(execFile);

export function refuseWithoutGenerator(): void {
  const missing = needProgram(generator);
  if (missing !== null) throw new Error(`The bench ${missing}.`);
}

export function writeRequests(
  path: string,
  key: string,
  requests: readonly Request[],
): RequestFile {
  const lines = requests.map(
    ({ method, path: target, body = '' }) => `${method}\t${target}\t${body}`,
  );
  writeFileSync(path, `${lines.join('\n')}\n`);
  return { path, authorization: `Bearer ${key}` };
}

/** Fires for a while and counts. A request that fails spoils the measurement, so it ends the bench. */
export async function fire(
  url: string,
  requests: RequestFile,
  { connections, seconds }: LoadOptions,
): Promise<Load> {
  const { stdout } = await run(generator, [
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
    requests.authorization,
  ]);
  const line = stdout.split('\n').find((text) => text.startsWith('{'));
  if (line === undefined) throw new Error(`${generator} gave no result: ${stdout}`);
  const result = JSON.parse(line) as {
    requests: number;
    seconds: number;
    failed: number;
    p50Us: number;
    p99Us: number;
  };
  if (result.failed > 0) throw new Error(`${result.failed} requests failed at ${url}`);
  return {
    perSecond: result.requests / result.seconds,
    p50Us: result.p50Us,
    p99Us: result.p99Us,
  };
}
