import assert from 'node:assert/strict';
import { join } from 'node:path';
import { callCli, spawnCli, spawnServer } from '../support/cli.ts';
import type { CliResult, ServerProcess } from '../support/cli.ts';
import { temporaryFolder } from '../support/service.ts';

/** A test, or a whole file with `after` of node:test: anything that runs clean-up functions. */
export interface Cleaner {
  after(clean: () => void | Promise<void>): void;
}

/** The command line, always on the same store. */
export interface Tool {
  path: string;
  database: string;
  run(...args: string[]): Promise<CliResult>;
  /** Runs a command that must succeed, with --json, and reads its product. */
  json<T>(...args: string[]): Promise<T>;
}

export interface NewKeyJson {
  key: string;
  key_id: string;
  team_id: string;
  team: string;
  scope: string;
  name: string | null;
  expires: string | null;
}

export function toolOn(path: string): Tool {
  const database = `sqlite:${path}`;
  const run = (...args: string[]) => callCli([...args, '--database', database]);
  return {
    path,
    database,
    run,
    async json<T>(...args: string[]) {
      const result = await run(...args, '--json');
      assert.equal(result.code, 0, `${args.join(' ')} ended with ${result.code}: ${result.stderr}`);
      return JSON.parse(result.stdout) as T;
    },
  };
}

/** A tool on a store that does not exist yet, in a folder that goes away with the test. */
export function toolInFolder(t: Cleaner): Tool {
  const folder = temporaryFolder();
  t.after(() => folder.remove());
  return toolOn(join(folder.path, 'tracetally.db'));
}

/** A server process that ends with the test at the latest. */
export async function startServer(
  t: Cleaner,
  tool: Tool,
  flags: readonly string[] = [],
  env: Record<string, string> = {},
): Promise<ServerProcess> {
  const server = await spawnServer(['--database', tool.database, ...flags], env);
  t.after(async () => void (await server.end('SIGKILL')));
  return server;
}

/** A server that should refuse to start, to its end. If it starts anyway it is killed, and its code is null. */
export async function runServeToEnd(
  flags: readonly string[],
  env: Record<string, string> = {},
): Promise<CliResult> {
  const child = spawnCli(['serve', ...flags], env);
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (data: Buffer) => {
    stdout += data.toString();
    child.kill('SIGKILL');
  });
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, stdout, stderr };
}

export interface Answer<T> {
  status: number;
  body: T;
}

export interface ProblemJson {
  status: number;
  code: string;
  detail: string;
}

export interface TraceJson {
  id: string;
  team_id: string;
  model: string;
  input: string | null;
  output: string | null;
  cost_usd: number | null;
  latency_ms: number | null;
  prompt_tokens: number | null;
  status: string;
  feature_name: string | null;
  user_identifier: string | null;
  started_at?: string;
  environment?: string;
  provider?: string;
  session_id?: string;
  run_id?: string;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
  error_type?: string;
  created_at: string;
}

export interface PageJson {
  traces: TraceJson[];
  total: number;
}

/** One real request. Without a body it is a GET, with one a POST. */
export async function call<T = TraceJson & ProblemJson>(
  url: string,
  key: string | null,
  body?: unknown,
): Promise<Answer<T>> {
  const response = await fetch(url, {
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    headers: {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
  });
  return { status: response.status, body: (await response.json()) as T };
}

export function postTrace(url: string, key: string, fields: Record<string, unknown> = {}) {
  return call(`${url}/traces`, key, { model: 'test-model', ...fields });
}

export async function totalOf(url: string, key: string): Promise<number> {
  const { status, body } = await call<PageJson>(`${url}/traces?limit=1`, key);
  assert.equal(status, 200);
  return body.total;
}

/** All traces of the team, newest first, read page by page. */
export async function allTraces(url: string, key: string): Promise<TraceJson[]> {
  const traces: TraceJson[] = [];
  for (let page = 1; ; page++) {
    const { status, body } = await call<PageJson>(`${url}/traces?limit=100&page=${page}`, key);
    assert.equal(status, 200);
    traces.push(...body.traces);
    if (body.traces.length < 100) return traces;
  }
}

/** Runs a few at a time: each command is a process, and there are few cores. */
export async function inParallel<T>(
  items: readonly T[],
  work: (item: T) => Promise<void>,
  workers = 2,
): Promise<void> {
  const left = items.values();
  await Promise.all(
    Array.from({ length: workers }, async () => {
      for (const item of left) await work(item);
    }),
  );
}

/** A readable failure: the exit code, a matching message on stderr, an empty stdout, and no stack trace. */
export function assertRefused(result: CliResult, code: number, words: RegExp): void {
  assertNoStack(result);
  assert.match(result.stderr, words);
  assert.equal(result.code, code, result.stderr);
  assert.equal(result.stdout, '');
}

export function assertNoStack({ stdout, stderr }: CliResult): void {
  assert.doesNotMatch(
    `${stdout}\n${stderr}`,
    /^\s+at .+:\d+|node:internal|Node\.js v\d|\w+Error:/m,
  );
}
