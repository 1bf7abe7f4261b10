import { spawn } from 'node:child_process';
import type { ChildProcess, ChildProcessWithoutNullStreams } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { strangerEnvironment } from '../../client/test/support/stranger.ts';
import { spawnCli } from '../../server/test/support/cli.ts';
import type { HowToRun } from '../../server/test/support/cli.ts';
import { watchChild } from './children.ts';

/** A server in a separate process. */
export interface Running {
  url: string;
  pid: number;
  stop(): Promise<void>;
}

/** One of the bare servers in this folder. */
export function startControl(file: string, args: readonly string[] = []): Promise<Running> {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const stdio: ['ignore', 'pipe', 'inherit'] = ['ignore', 'pipe', 'inherit'];
  return whenListening(file, spawn(process.execPath, [path, ...args], { stdio }));
}

/**
 * The real service on this database, such as `sqlite:…` or `postgres://…`, started in the usual way; from another checkout if
 * one is given.
 */
export function startService(
  database: string,
  checkout: string | null = null,
  flags: readonly string[] = [],
): Promise<Running> {
  const args = [...serveArguments, ...flags];
  return whenServing(spawnCli(args, environmentFor(database), launcherOf(checkout)));
}

/** The service that was installed from its npm package in this folder, started as a stranger would. */
export function startPacked(database: string, folder: string): Promise<Running> {
  const env = { ...strangerEnvironment, ...environmentFor(database) };
  const launcher = join(folder, 'node_modules/.bin/tracetally');
  return whenServing(spawn(launcher, serveArguments, { env }));
}

const serveArguments = ['serve', '--port', '0', '--log-level', 'warn'];

function whenServing(child: ChildProcessWithoutNullStreams): Promise<Running> {
  child.stderr.pipe(process.stderr);
  return whenListening('the service', child);
}

async function whenListening(
  name: string,
  child: ChildProcess & { stdout: Readable },
): Promise<Running> {
  watchChild(child);
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  let said = '';
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on('data', (data: Buffer) => {
      said += data.toString();
      // An older checkout says "listens on".
      const found = /listen(?:s|ing) on (\S+)/.exec(said)?.[1];
      if (found !== undefined) resolve(found);
    });
    void ended.then(() => reject(new Error(`${name} ended before it listened`)));
  });
  if (child.pid === undefined) throw new Error(`${name} did not start`);
  return {
    url,
    pid: child.pid,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

function launcherOf(checkout: string | null): HowToRun {
  return checkout === null ? {} : { launcher: join(checkout, 'server/bin/tracetally.js') };
}

/** A key of the team, created with the command line. */
export async function makeKey(
  database: string,
  team: string,
  checkout: string | null = null,
): Promise<string> {
  const { key } = await tracetally(database, ['keys', 'create', '--team', team], checkout);
  return String(key);
}

/** Runs a command and returns the JSON that it prints. */
export async function tracetally(
  database: string,
  args: readonly string[],
  checkout: string | null = null,
): Promise<Record<string, unknown>> {
  const how = launcherOf(checkout);
  const child = watchChild(spawnCli([...args, '--json'], environmentFor(database), how));
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const code = await ended;
  if (code !== 0) throw new Error(`tracetally ${args.join(' ')} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout) as Record<string, unknown>;
}

/** The database is set in the environment: its URL may contain a password, and command lines are visible in the list of processes. */
function environmentFor(database: string): Record<string, string> {
  return { TRACETALLY_DATABASE: database };
}

/** The CPU time that all threads of the process have used so far. */
export function cpuSeconds(pid: number): number {
  const [, ...fields] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  const ticksPerSecond = 100;
  return (Number(fields[10]) + Number(fields[11])) / ticksPerSecond;
}

/** The same to the nanosecond, for differences of less than a clock tick. No thread may end in between. */
export function preciseCpuSeconds(pid: number): number {
  const threads = globSync(`/proc/${pid}/task/*/schedstat`);
  const nanos = threads.map((file) => Number(readFileSync(file, 'utf8').split(' ')[0]));
  return nanos.reduce((sum, value) => sum + value, 0) / 1e9;
}

export function residentMb(pid: number): number {
  const [, kb] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kb) / 1024;
}
