import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { makeKey } from '../../src/store/teams-and-keys.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Database } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { inParallel } from '../cli/helpers.ts';
import { spawnServer } from '../support/cli.ts';
import type { ServerProcess } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { readRequestLog } from '../support/request-log.ts';
import { temporaryFolder } from '../support/service.ts';

/** How many rounds the random tests run: few in `npm test`, many in `npm run test:soak`. */
export function rounds(inTests: number): number {
  const asked = process.env['CRASH_ROUNDS'];
  return asked === undefined ? inTests : Number(asked);
}

/** A team with an API key, made in the store before a server runs. */
export interface LoadTeam {
  id: string;
  key: string;
}

export async function makeTeams(place: Place, count: number): Promise<LoadTeam[]> {
  return withTool(place, async (store) => {
    const teams: LoadTeam[] = [];
    const make = async (i: number): Promise<void> => {
      const nowUs = Date.now() * 1000;
      const { team } = await store.ensureTeam(`load-${i}`, nowUs);
      const { key, record } = makeKey({ name: null, scope: 'full', nowUs, expiresAtUs: null });
      await store.createKey(team.id, record);
      teams[i] = { id: team.id, key };
    };
    await inParallel([...Array(count).keys()], make, 8);
    return teams;
  });
}

/** A store. A plain path is that of a SQLite file. */
export type Place = Database | string;

export async function withTool<T>(place: Place, work: (store: Store) => Promise<T>): Promise<T> {
  const database: Database = typeof place === 'string' ? { kind: 'sqlite', path: place } : place;
  const store = await openStore(database, { clock: { kind: 'system' }, role: 'tool' });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** A server in a separate process on a new store, for one test. */
export interface Stage {
  server: ServerProcess;
  databasePath: string;
  folder: string;
  teams: readonly LoadTeam[];
  /** The API key of the first team. */
  key: string;
  hostname: string;
  port: number;
  /** Kills the server and removes its files. */
  tearDown(): Promise<void>;
}

export async function setStage(teamCount = 1): Promise<Stage> {
  const folder = temporaryFolder();
  const databasePath = join(folder.path, 'crash.db');
  const teams = await makeTeams(databasePath, teamCount);
  const flags = ['--database', `sqlite:${databasePath}`, '--log-level', 'silent'];
  const server = await spawnServer(flags);
  const { hostname, port } = new URL(server.url);
  return {
    server,
    databasePath,
    folder: folder.path,
    teams,
    key: teams[0]?.key ?? '',
    hostname,
    port: Number(port),
    async tearDown() {
      await server.end('SIGKILL');
      folder.remove();
    },
  };
}

export interface Load {
  /** Resolves when the first request of this load is acknowledged. */
  begun(): Promise<void>;
  /** Resolves when the clients have stopped by themselves. */
  ended: Promise<void>;
  /** Stops the clients, if they still run, and returns how many answers of each status there were. */
  end(): Promise<Record<string, number>>;
  /** Kills the clients, which leaves requests without an answer. */
  kill(): Promise<void>;
}

/** Starts the clients in a separate process. Their request log is in the folder. */
export function startLoad(
  url: string,
  folder: string,
  clients: number,
  round: number | 'last',
  teams: readonly LoadTeam[],
  program: 'load.ts' | 'idempotency-load.ts' = 'load.ts',
): Load {
  const path = requestLogPath(folder);
  const keys = teams.map(({ key }) => key);
  const args = [program, url, path, String(clients), String(round), ...keys];
  const bytesBefore = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const child = spawn(process.execPath, args, {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let stdout = '';
  child.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const hasBegun = () =>
    existsSync(path) && readFileSync(path).subarray(bytesBefore).includes('acknowledged');
  return {
    begun: async () => void (await eventually('an acknowledged request', 120_000, hasBegun, 10)),
    ended,
    async end() {
      child.kill('SIGTERM');
      await ended;
      return JSON.parse(stdout) as Record<string, number>;
    },
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

export function requestLogPath(folder: string): string {
  return join(folder, 'requests.log');
}

/** A trace that was acknowledged to a client of the load. */
export interface AcknowledgedTrace {
  team: number;
  id: string;
  /** The name of its request, which it has as its user. */
  name: string;
}

export function readAcknowledged(folder: string): AcknowledgedTrace[] {
  return readRequestLog(requestLogPath(folder)).flatMap(({ team, name, acknowledged }) =>
    acknowledged.flatMap(({ ids }) => ids.map((id) => ({ team, id, name }))),
  );
}

export interface Comparison {
  acknowledged: number;
  stored: number;
  lost: AcknowledgedTrace[];
  /** The names of requests that were stored more than once. */
  twice: string[];
}

/** Compares the request log with the store, and verifies the store. */
export async function compareWithStore(
  databasePath: string,
  folder: string,
  teams: readonly LoadTeam[],
): Promise<Comparison> {
  const acknowledged = readAcknowledged(folder);
  const idOf = new Map<string, string>();
  const twice: string[] = [];
  let stored = 0;
  await withTool(databasePath, async (store) => {
    assert.deepEqual(await store.checkStorage(), []);
    for (const { id: teamId } of teams) {
      const report = await verifyTeam(store, teamId);
      assert.deepEqual(report.differences, []);
      stored += report.traces;
      await store.audit(teamId, async ({ traces }) => {
        for await (const chunk of traces) {
          for (const { id, user_identifier } of chunk) {
            const name = user_identifier ?? '';
            if (idOf.has(name)) twice.push(name);
            idOf.set(name, id);
          }
        }
      });
    }
  });
  const lost = acknowledged.filter(({ id, name }) => idOf.get(name) !== id);
  return { acknowledged: acknowledged.length, stored, lost, twice };
}
