import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { postTrace, runServeToEnd } from '../cli/helpers.ts';
import type { Answer, Cleaner, ProblemJson, Tool, TraceJson } from '../cli/helpers.ts';
import type { CliResult } from '../support/cli.ts';
import { temporaryFolder } from '../support/service.ts';

export const launcher = fileURLToPath(new URL('../../bin/tracetally.js', import.meta.url));

/** Runs any program to its end. */
export async function runProgram(
  program: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<CliResult> {
  const child = spawn(program, args, options);
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return { code, stdout, stderr };
}

/** The environment of a process that no setting reaches. */
export function plainEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('TRACETALLY_'));
  return Object.fromEntries(kept);
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const holder = await holdPort();
  holder.release();
  return holder.port;
}

/** A port that is taken until it is released. */
export async function holdPort(): Promise<{ port: number; release(): void }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port, release: () => void server.close() };
}

export function hashOfFile(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}

export interface Crowd {
  /** The ids of the traces that were acknowledged so far. */
  acknowledged: string[];
  /** Answers other than 201. */
  others: Answer<ProblemJson>[];
  /** Resolves when every client has lost its server. */
  ended: Promise<void>;
}

/** Clients that post one trace after the other, each until the server is gone. */
export function startCrowd(clients: number, url: string, key: string): Crowd {
  const acknowledged: string[] = [];
  const others: Answer<ProblemJson>[] = [];
  async function client(no: number): Promise<void> {
    for (let i = 0; ; i++) {
      let answer: Answer<TraceJson & ProblemJson>;
      try {
        answer = await postTrace(url, key, {
          user_identifier: `c${no}`,
          input: `${i}`,
          cost_usd: 0.001,
        });
      } catch {
        return;
      }
      if (answer.status === 201) acknowledged.push(answer.body.id);
      else others.push(answer);
    }
  }
  const ended = Promise.all(Array.from({ length: clients }, (_, no) => client(no)));
  return { acknowledged, others, ended: ended.then(() => {}) };
}

export async function assertVerifyClean(tool: Tool): Promise<void> {
  const report = await tool.run('verify');
  assert.equal(report.code, 0, `${report.stdout}${report.stderr}`);
}

/** A server on this store that should refuse to start. */
export function serveToEnd({ database }: Tool): Promise<CliResult> {
  return runServeToEnd(['--port', '0', '--database', database]);
}

export type Mount = { kind: 'mounted'; folder: string } | { kind: 'impossible'; reason: string };

/** A small file system in memory that goes away with the test, also when the test fails. */
export async function mountTmpfs(t: Cleaner, options: string): Promise<Mount> {
  if (process.getuid?.() !== 0) return impossible('only root can mount a file system');
  const { path: folder, remove } = temporaryFolder();
  const mounted = await runProgram('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder]).catch(
    (error: Error) => ({ code: null, stderr: error.message }),
  );
  if (mounted.code !== 0) {
    remove();
    return impossible(`a file system cannot be mounted here: ${mounted.stderr.trim()}`);
  }
  t.after(async () => {
    // Lazy, so that it goes away also while a process that is about to end has it open.
    const unmounted = await runProgram('umount', ['-l', folder]);
    assert.equal(unmounted.code, 0, unmounted.stderr);
    remove();
  });
  return { kind: 'mounted', folder };
}

function impossible(reason: string): Mount {
  return { kind: 'impossible', reason };
}
