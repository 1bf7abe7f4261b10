import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { appendFileSync, closeSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { openFailureLog } from '../../src/http/failure-log.ts';
import { limits } from '../../src/limits.ts';
import { openLogSink, openLogger } from '../../src/log.ts';
import { call, inParallel, postTrace, startServer, toolInFolder, totalOf } from '../cli/helpers.ts';
import type { NewKeyJson, Tool } from '../cli/helpers.ts';
import { eventually } from '../support/eventually.ts';
import { skipUnlessCi } from '../support/skip.ts';
import { freePort, launcher, mountTmpfs, plainEnvironment } from './helpers.ts';

const deadlineMs = 120_000;

async function toolWithKey(t: TestContext): Promise<Tool & { key: string }> {
  const tool = toolInFolder(t);
  const { key } = await tool.json<NewKeyJson>('keys', 'create', '--team', 'log');
  return { ...tool, key };
}

interface Running {
  child: ChildProcess;
  url: string;
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/** A server whose outputs are what the test says, so it is found by its port and not by its greeting. */
async function serveWith(
  t: TestContext,
  tool: Tool,
  stdio: ['ignore', 'ignore' | 'pipe' | number, 'ignore' | 'pipe' | number],
  moreFlags: readonly string[] = [],
): Promise<Running> {
  const port = await freePort();
  const flags = ['--port', String(port), '--database', tool.database, ...moreFlags];
  const child = spawn(process.execPath, [launcher, 'serve', ...flags], {
    stdio,
    env: plainEnvironment(),
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const end = (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal);
    return ended;
  };
  t.after(async () => void (await end('SIGKILL')));
  return { child, url: `http://127.0.0.1:${port}`, end };
}

async function assertReady({ url, child }: Running): Promise<void> {
  await eventually('a server that is ready', deadlineMs, async () => {
    assert.equal(child.exitCode, null, 'the server has ended');
    const answer = await fetch(`${url}/readyz`).catch(() => null);
    return answer?.status === 200;
  });
}

/** Requests that are refused, each with a line in the log. */
async function refuse(url: string, count: number): Promise<void> {
  await inParallel(
    [...Array(count).keys()],
    async (i) => {
      assert.equal((await call(`${url}/nothing-${i}`, null)).status, 404);
    },
    16,
  );
}

async function assertServes({ url, child }: Running, key: string, before: number): Promise<void> {
  for (let i = 0; i < 3; i++) assert.equal((await postTrace(url, key)).status, 201);
  assert.equal(await totalOf(url, key), before + 3);
  assert.equal(child.exitCode, null);
}

test('a closed log pipe does not end the service', async (t) => {
  const { key, ...tool } = await toolWithKey(t);
  const server = await serveWith(t, tool, ['ignore', 'ignore', 'pipe']);
  await assertReady(server);
  server.child.stderr?.destroy();
  await refuse(server.url, 50);
  await assertServes(server, key, 0);
  assert.equal(await server.end('SIGTERM'), 0, 'a normal stop');
});

test('a closed standard output does not end the service, and the log says that the startup message is lost', async (t) => {
  const { key, ...tool } = await toolWithKey(t);
  const server = await serveWith(t, tool, ['ignore', 'pipe', 'pipe']);
  server.child.stdout?.destroy();
  let log = '';
  server.child.stderr?.on('data', (data: Buffer) => (log += data.toString()));
  await assertReady(server);
  await eventually('a line about the startup message', deadlineMs, async () =>
    log.includes('startup message'),
  );
  await assertServes(server, key, 0);
  assert.equal(await server.end('SIGTERM'), 0);
});

test('a log pipe that is not read blocks neither requests nor the stop', async (t) => {
  const { key, ...tool } = await toolWithKey(t);
  // With a line for every request, the pipe is full after a few hundred.
  const level = ['--log-level', 'debug'];
  const server = await serveWith(t, tool, ['ignore', 'ignore', 'pipe'], level);
  server.child.stderr?.pause();
  await assertReady(server);
  await refuse(server.url, 3000);
  const served = assertServes(server, key, 0).then(() => true);
  await eventually('replies while the pipe is full', deadlineMs, () => served);
  server.child.kill('SIGTERM');
  await eventually('an end after SIGTERM', deadlineMs, async () => server.child.exitCode);
  assert.equal(server.child.exitCode, 0);
});

test('a full disk under the log file loses only log lines, and they are counted', async (t) => {
  const mount = await mountTmpfs(t, 'size=64k');
  if (mount.kind === 'impossible') return skipUnlessCi(t, mount.reason);
  const { key, ...tool } = await toolWithKey(t);
  const logFile = join(mount.folder, 'log');
  const filler = join(mount.folder, 'filler');
  const fd = openSync(logFile, 'a');
  const server = await serveWith(t, tool, ['ignore', 'ignore', fd]);
  closeSync(fd);
  await assertReady(server);
  assert.throws(() => {
    for (;;) appendFileSync(filler, Buffer.alloc(1024));
  }, /ENOSPC/);
  // The page that the file has begun may hold a few more lines.
  for (const path of ['/a', '/traces', '/traces/x']) {
    for (let i = 0; i < 15; i++) await call(`${server.url}${path}`, null);
  }
  await assertServes(server, key, 0);

  rmSync(filler);
  await call(`${server.url}/traces/x`, 'tt_wrong');
  const report = await eventually('a line with the number of lost lines', deadlineMs, async () => {
    const lines = readFileSync(logFile, 'utf8').split('\n');
    return lines.find((line) => line.includes('log lines were lost'));
  });
  const { lost_lines: lost } = JSON.parse(report) as { lost_lines: number };
  assert.ok(lost >= 1 && lost <= 45, `${lost} lines`);
  assert.equal(await server.end('SIGTERM'), 0);
  const last = readFileSync(logFile, 'utf8').trimEnd().split('\n').at(-1) ?? '';
  assert.match(last, /"msg":"stopped"/, 'lines are written to the end of a normal stop');
});

test('a flood of refused requests is logged in full at first, then in summary', async (t) => {
  const { key, ...tool } = await toolWithKey(t);
  const server = await startServer(t, tool);
  const count = 4000;
  await refuse(server.url, count);
  for (let i = 0; i < 100; i++) {
    const { status } = await call(`${server.url}/traces`, key, { model: 7 });
    assert.equal(status, 422);
  }
  assert.equal((await postTrace(server.url, key)).status, 201);
  assert.equal(await server.end('SIGTERM'), 0);
  const log = server.stderr();
  assert.ok(log.length < 64 * 1024, `${log.length} bytes of log`);
  const lines = log
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const inFull = lines.filter(({ msg }) => msg === 'request');
  assert.ok(inFull.some(({ status }) => status === 404));
  assert.ok(
    inFull.some(({ status }) => status === 422),
    'one flood must not hide another kind',
  );
  // The minute may have ended in between, so there may be two summaries.
  const summed = lines.flatMap(({ failures }) => (failures ?? []) as FailureCount[]);
  const of = (code: string): number =>
    summed.filter((one) => one.code === code).reduce((sum, one) => sum + one.count, 0);
  assert.equal(of('route_not_found') + inFull.filter(({ status }) => status === 404).length, count);
  assert.equal(of('invalid_input') + inFull.filter(({ status }) => status === 422).length, 100);
  assert.deepEqual(
    summed.find(({ code }) => code === 'invalid_input'),
    { code: 'invalid_input', route: '/traces', count: of('invalid_input') },
  );
});

interface FailureCount {
  code: string;
  route: string | null;
  count: number;
}

test('log level debug has a line for every request', async (t) => {
  const tool = await toolWithKey(t);
  const server = await startServer(t, tool, ['--log-level', 'debug']);
  await refuse(server.url, 200);
  await server.end('SIGTERM');
  assert.equal(server.stderr().match(/"status":404/g)?.length, 200);
});

test('a log reader that does not read costs bounded memory, and lost lines are counted', async () => {
  const texts: string[] = [];
  const reader = Promise.withResolvers<void>();
  const sink = openLogSink(async (text) => {
    texts.push(text);
    await reader.promise;
  });
  const line = `${'x'.repeat(999)}\n`;
  for (let i = 0; i < 5000; i++) sink.write(line);
  reader.resolve();
  await sink.flush();
  const written = texts.join('');
  assert.ok(written.length < limits.logBufferBytesMax + 2000, `${written.length} bytes`);
  const [, lost] = /"lost_lines":(\d+)/.exec(written) ?? [];
  assert.equal(Number(lost) + (written.match(/^x+$/gm)?.length ?? 0), 5000);
});

test('failures are summarized at the end of each interval, by code and route', async () => {
  const lines: string[] = [];
  const logger = openLogger('info', { write: (line) => void lines.push(line) });
  const bounds = { failureLogIntervalMs: 20, failureLinesMax: 2, failureKindsMax: 3 };
  const failures = openFailureLog(logger, bounds);
  const missing = { code: 'route_not_found', route: null } as const;
  assert.deepEqual(
    Array.from({ length: 4 }, () => failures.admit(missing)),
    [true, true, false, false],
  );
  const broken = (reason: string) => failures.admit({ code: 'internal', route: '/traces', reason });
  assert.deepEqual(['a', 'a', 'a', 'b'].map(broken), [true, true, false, true]);
  // Past the number of kinds, reasons share the lines of their code.
  assert.deepEqual(['c', 'd', 'e'].map(broken), [true, true, false]);
  const summary = await eventually('a summary', deadlineMs, async () => lines[0] ?? null);
  assert.deepEqual((JSON.parse(summary) as { failures: unknown }).failures, [
    { code: 'route_not_found', route: null, count: 2 },
    { code: 'internal', route: '/traces', count: 2 },
  ]);
  assert.ok(failures.admit(missing), 'the next interval begins anew');
  failures.close();
  assert.equal(lines.length, 1, 'nothing was left out, so there is no summary');
});
