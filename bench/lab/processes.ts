import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runCli, spawnServer } from '../../server/test/support/cli.ts';

/** A server in a process of its own. */
export interface Running {
  url: string;
  pid: number;
  stop(): Promise<void>;
}

/** One of the bare servers beside this file. */
export async function startControl(file: string, args: readonly string[] = []): Promise<Running> {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const child = spawn(process.execPath, [path, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on('data', (data: Buffer) => {
      const found = /listens on (\S+)/.exec(data.toString())?.[1];
      if (found !== undefined) resolve(found);
    });
    void ended.then(() => reject(new Error(`${file} ended before it listened`)));
  });
  return {
    url,
    pid: pidOf(child),
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** The real service on this file, started as anyone starts it. */
export async function startService(databasePath: string): Promise<Running> {
  const server = await spawnServer(['--database', `sqlite:${databasePath}`, '--log-level', 'warn']);
  return {
    url: server.url,
    pid: pidOf(server.child),
    async stop() {
      await server.end('SIGTERM');
    },
  };
}

/** A key of the team, made with the command line. */
export async function makeKey(databasePath: string, team: string): Promise<string> {
  const { key } = await tracetally(databasePath, ['keys', 'create', '--team', team]);
  return String(key);
}

/** Runs a command that answers in JSON. */
export async function tracetally(
  databasePath: string,
  args: readonly string[],
): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await runCli([
    ...args,
    '--json',
    '--database',
    `sqlite:${databasePath}`,
  ]);
  if (code !== 0) throw new Error(`tracetally ${args.join(' ')} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout) as Record<string, unknown>;
}

export function residentMb(pid: number): number {
  const [, kb] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kb) / 1024;
}

function pidOf(child: ChildProcess): number {
  if (child.pid === undefined) throw new Error('the process did not start');
  return child.pid;
}
