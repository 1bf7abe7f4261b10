import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { makeKey } from '../../src/store/teams-and-keys.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Database } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { inParallel } from '../cli/helpers.ts';
import { spawnServer } from '../support/cli.ts';
import type { ServerProcess } from '../support/cli.ts';
import { temporaryFolder } from '../support/service.ts';

/** How often the random tests run: few times in `npm test`, many in `npm run test:soak`. */
export function rounds(inTests: number): number {
  const asked = process.env['CRASH_ROUNDS'];
  return asked === undefined ? inTests : Number(asked);
}

/** Teams with a key each, made in the store before any server runs. */
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

/** A store; a path alone is that of a SQLite file. */
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

/** A server of its own process on a fresh store, for one test. */
export interface Stage {
  server: ServerProcess;
  databasePath: string;
  folder: string;
  teams: readonly LoadTeam[];
  /** Of the first team. */
  key: string;
  hostname: string;
  port: number;
  /** Ends the server without further ado and takes everything away. */
  strike(): Promise<void>;
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
    async strike() {
      await server.end('SIGKILL');
      folder.remove();
    },
  };
}

export interface Load {
  /** Resolves when the ledger has its first entry of this load. */
  begun(): Promise<void>;
  /** The clients stop, or have stopped; tells how many answers of each status there were. */
  end(): Promise<Record<string, number>>;
}

const loadProgram = fileURLToPath(new URL('load.ts', import.meta.url));

/** Starts the clients in a process of their own. */
export function startLoad(
  url: string,
  folder: string,
  clients: number,
  round: number,
  teams: readonly LoadTeam[],
): Load {
  const args = [
    url,
    ledgerPath(folder),
    String(clients),
    String(round),
    ...teams.map(({ key }) => key),
  ];
  const child = spawn(process.execPath, [loadProgram, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const bytesBefore = ledgerBytes(folder);
  let stdout = '';
  child.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  return {
    async begun() {
      for (let waits = 0; ledgerBytes(folder) === bytesBefore; waits++) {
        assert.ok(waits < 1000, 'nothing was acknowledged for 10 s');
        await sleep(10);
      }
    },
    async end() {
      child.kill('SIGTERM');
      await ended;
      return JSON.parse(stdout) as Record<string, number>;
    },
  };
}

function ledgerBytes(folder: string): number {
  return statSync(ledgerPath(folder), { throwIfNoEntry: false })?.size ?? 0;
}

function ledgerPath(folder: string): string {
  return join(folder, 'ledger.txt');
}

export interface Entry {
  team: number;
  id: string;
  nonce: string;
}

export function readLedger(folder: string): Entry[] {
  if (!existsSync(ledgerPath(folder))) return [];
  return readFileSync(ledgerPath(folder), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [team = '', id = '', nonce = ''] = line.split(' ');
      return { team: Number(team), id, nonce };
    });
}

export interface Balance {
  acknowledged: number;
  stored: number;
  lost: Entry[];
  /** Requests that were stored more than once, by their nonce. */
  twice: string[];
}

/** Holds the ledger against the store, and recounts the store. */
export async function balance(
  databasePath: string,
  folder: string,
  teams: readonly LoadTeam[],
): Promise<Balance> {
  const ledger = readLedger(folder);
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
            const nonce = user_identifier ?? '';
            if (idOf.has(nonce)) twice.push(nonce);
            idOf.set(nonce, id);
          }
        }
      });
    }
  });
  const lost = ledger.filter(({ id, nonce }) => idOf.get(nonce) !== id);
  return { acknowledged: ledger.length, stored, lost, twice };
}
