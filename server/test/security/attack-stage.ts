import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestContext } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import type { Database } from '../../src/store/open-store.ts';
import { makeTeams, withTool } from '../guarantees/crash-lab.ts';
import type { LoadTeam } from '../guarantees/crash-lab.ts';
import { spawnServer } from '../support/cli.ts';
import type { ServerProcess } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { makePostgres } from '../support/postgres.ts';
import { temporaryFolder } from '../support/service.ts';
import { storeAtLast } from '../support/store-at-last.ts';
import { runSql } from '../support/store-place.ts';

const mb = 1e6;
const turnWatch = new URL('../support/turn-watch.ts', import.meta.url).href;
/** A turn of the event loop may take so many times the control of `turn-watch.ts`, which takes about 20 ms of processor time. */
const turnControlsMax = 30;
/** For what must come to an end at all, on a machine that has much else to do. */
const answerMsMax = 120_000;

/** A real server process, a team that attacks and one that just works. */
export interface AttackStage {
  server: ServerProcess;
  attacker: LoadTeam;
  honest: LoadTeam;
  /** Stores traces of the attacker without the server. */
  fill(drafts: Iterable<Parameters<typeof draftTrace>[0]>): Promise<void>;
  /** Waits until a list of names is answered: on PostgreSQL it gets a 503 as long as very many new traces are not rolled up. */
  isListed(path: string): Promise<void>;
  /** Runs the attack, and checks and prints what it did to the server and to the honest team. */
  endure(t: TestContext, attack: Attack): Promise<void>;
  socket(): Promise<Socket>;
  /** Reads replies of the attacker's concurrently and to their end, in a separate process, so that the probes here are not delayed. */
  readElsewhere(path: string, times: number): Promise<number[]>;
  tearDown(): Promise<void>;
}

/** `goOn` waits for a while, during which the server is probed a number of times, so on a slow machine it waits longer. */
export type Attack = (goOn: () => Promise<void>) => Promise<void>;

const probesPerAttack = 20;

export async function setAttackStage(kind: Database['kind']): Promise<AttackStage> {
  const folder = temporaryFolder();
  const postgres = kind === 'postgres' ? makePostgres({}) : null;
  await postgres?.start();
  const database: Database = postgres
    ? { kind: 'postgres', url: await postgres.createDatabase() }
    : { kind: 'sqlite', path: join(folder.path, 'attack.db') };
  const [attacker, honest] = await makeTeams(database, 2);
  assert.ok(attacker && honest);
  const name = database.kind === 'sqlite' ? `sqlite:${database.path}` : database.url;
  const turnFile = join(folder.path, 'turns');
  const server = await spawnServer(['--database', name, '--log-level', 'silent'], {
    NODE_OPTIONS: `--import=${turnWatch}`,
    TURN_WATCH_FILE: turnFile,
  });
  const { hostname, port } = new URL(server.url);
  const sockets: Socket[] = [];

  const stage: AttackStage = {
    server,
    attacker,
    honest,
    fill: (bodies) =>
      withTool(database, async (store) => {
        let drafts: ReturnType<typeof draftTrace>[] = [];
        const flush = async (): Promise<void> => {
          if (drafts.length === 0) return;
          await storeAtLast(store, { teamId: attacker.id, drafts });
          drafts = [];
        };
        for (const body of bodies) {
          drafts.push(draftTrace(body));
          if (drafts.length === 1_000 || (body.input?.length ?? 0) > mb) await flush();
        }
        await flush();
        // Otherwise this would happen during the first attacks.
        if (database.kind === 'postgres') {
          await runSql(database, 'vacuum analyze');
          await runSql(database, 'checkpoint');
        }
      }),
    async isListed(path) {
      const agent = new Agent();
      const ask = () => send(server.url, `${path}?limit=1`, agent, attacker.key);
      await eventually(`${path} is answered`, 150_000, async () => (await ask()) === 200);
      agent.destroy();
    },
    readElsewhere: (path, times) => readInChild(`${server.url}${path}`, attacker.key, times),
    async socket() {
      const socket = connect(Number(port), hostname);
      sockets.push(socket);
      socket.on('error', () => {});
      await new Promise((resolve) => socket.once('connect', resolve));
      return socket;
    },
    async endure(t, attack) {
      const idle = residentBytes(server);
      const turnsBefore = readTurns(turnFile).length;
      const watch = watchServer(server, honest);
      try {
        await attack(watch.probed);
      } catch (error) {
        await watch.end();
        throw error;
      } finally {
        for (const socket of sockets.splice(0)) socket.destroy();
      }
      const { peak, slowestMs, writes, reads, refusals, failures } = await watch.end();
      const grown = Math.round((peak - idle) / mb);
      const turns = readTurns(turnFile);
      const controlMs = turns[0] ?? assert.fail('the turns were not watched');
      const longestMs = Math.max(0, ...turns.slice(Math.max(1, turnsBefore)));
      const longest = `${Math.round(longestMs)} ms of processor time, ${(longestMs / controlMs).toFixed(1)} times the control`;
      t.diagnostic(
        `${kind}: idle ${Math.round(idle / mb)} MB, grew by ${grown} MB at most; slowest /healthz ${Math.round(slowestMs)} ms; ` +
          `longest turn ${longest}; ${writes} writes and ${reads} reads of another team, ${refusals} had to be repeated`,
      );
      assert.ok(grown < 400, `the process grew by ${grown} MB`);
      assert.deepEqual(failures, []);
      assert.ok(writes > 0 && reads > 0, 'the other team did nothing');
      assert.ok(refusals <= (writes + reads) / 2, `${refusals} requests had to be repeated`);
      assert.ok(longestMs < turnControlsMax * controlMs, `a turn took ${longest}`);
    },
    async tearDown() {
      await server.end('SIGKILL');
      await postgres?.stop();
      folder.remove();
    },
  };
  return stage;
}

/** The control, then the processor time of each long turn of the event loop. */
function readTurns(path: string): number[] {
  return readFileSync(path, 'utf8').trim().split('\n').map(Number);
}

/** Looks at the memory, asks for /healthz and writes for the honest team, all the time until it is ended. */
function watchServer(server: ServerProcess, honest: LoadTeam) {
  const agent = new Agent({ keepAlive: true });
  const done = new AbortController();
  const failures: string[] = [];
  let peak = 0;
  let slowestMs = 0;
  let probes = 0;
  let writes = 0;
  let reads = 0;
  let refusals = 0;
  const sample = setInterval(() => (peak = Math.max(peak, residentBytes(server))), 25);

  async function probe(): Promise<void> {
    while (!done.signal.aborted) {
      const startMs = performance.now();
      const status = await send(server.url, '/healthz', agent);
      slowestMs = Math.max(slowestMs, performance.now() - startMs);
      if (status !== 200) failures.push(`GET /healthz: ${status}`);
      probes += 1;
      await sleep(50);
    }
  }
  /** A 503 says that the request may be repeated: a store on a very busy machine may be too slow for the limits of the service. */
  async function servedAtLast(request: () => Promise<number>): Promise<number> {
    const look = async () => {
      const status = await request();
      if (status === 503) refusals += 1;
      return status === 503 ? null : { status };
    };
    return (await eventually('a request that is served', answerMsMax, look, 200)).status;
  }
  async function write(): Promise<void> {
    while (!done.signal.aborted) {
      const body = JSON.stringify({ model: 'm', input: 'x'.repeat(1_000) });
      const status = await servedAtLast(() => send(server.url, '/traces', agent, honest.key, body));
      writes += 1;
      if (status !== 201) failures.push(`POST /traces: ${status}`);
      await sleep(5);
    }
  }
  /** What the attacker uses up for itself must still be there for others. */
  async function read(): Promise<void> {
    while (!done.signal.aborted) {
      for (const path of ['/traces?limit=20', '/analytics/by-model', '/analytics/overview']) {
        const status = await servedAtLast(() => send(server.url, path, agent, honest.key));
        reads += 1;
        if (status !== 200) failures.push(`GET ${path}: ${status}`);
      }
      await sleep(20);
    }
  }
  const running = Promise.all([probe(), write(), write(), read()]);
  return {
    async probed() {
      const enough = probes + probesPerAttack;
      await eventually('probes of the server', answerMsMax, () => probes >= enough, 10);
    },
    async end() {
      done.abort();
      await running;
      clearInterval(sample);
      agent.destroy();
      return { peak, slowestMs, writes, reads, refusals, failures };
    },
  };
}

const reader = `
  const [url, key, times] = process.argv.slice(1);
  const { get } = await import('node:http');
  const headers = { authorization: 'Bearer ' + key };
  const read = () => new Promise((resolve, reject) => {
    get(url, { headers }, (response) => response.resume().on('close', () => resolve(response.statusCode))).on('error', reject);
  });
  console.log(JSON.stringify(await Promise.all(Array.from({ length: Number(times) }, read))));`;

async function readInChild(url: string, key: string, times: number): Promise<number[]> {
  const args = ['--input-type=module', '-e', reader, url, key, String(times)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  return JSON.parse(await text(child.stdout)) as number[];
}

/** Answers the status. No answer in time is status 0. */
export function send(
  url: string,
  path: string,
  agent: Agent,
  key?: string,
  body?: string,
): Promise<number> {
  const headers = {
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
    ...(body !== undefined && { 'content-type': 'application/json' }),
  };
  const method = body === undefined ? 'GET' : 'POST';
  return new Promise((resolve) => {
    const outgoing = request(`${url}${path}`, { agent, method, headers }, (response) => {
      response.resume();
      response.on('close', () => resolve(response.complete ? (response.statusCode ?? 0) : 0));
    });
    outgoing.setTimeout(answerMsMax, () => outgoing.destroy());
    outgoing.on('error', () => resolve(0));
    outgoing.end(body);
  });
}

export function residentBytes({ child }: ServerProcess): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}
