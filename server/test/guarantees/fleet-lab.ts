import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { eventually } from '../support/eventually.ts';
import { spawnServer } from '../support/cli.ts';
import type { ServerProcess } from '../support/cli.ts';
import type { LoadTeam } from './crash-lab.ts';

/** Servers on one database. A killed one is started again until it runs, as a supervisor would do. */
export interface Fleet {
  /** The current or last address of each server. */
  urls(): string[];
  /** SIGKILL to a running server, but never to the first: that one has to survive everything. False if no other runs. */
  killOne(random: () => number): boolean;
  /** Resolves when all of them run and are ready. */
  settle(): Promise<void>;
  /** The last output of servers that ended without being killed. */
  fallen(): string[];
  end(): Promise<void>;
}

interface Berth {
  server: ServerProcess | null;
  url: string;
  starting: Promise<void>;
}

/** Each attempt takes about a second of processor time. */
const restartMs = 300;

/** How long to try to start a server while its database is down, on a busy machine. */
const startMsMax = 60_000;

export async function startFleet(database: string, size: number): Promise<Fleet> {
  const fallen: string[] = [];
  let isOver = false;

  async function start(berth: Berth): Promise<void> {
    const untilMs = performance.now() + startMsMax;
    let words = '';
    while (!isOver && performance.now() < untilMs) {
      try {
        moor(berth, await spawnServer(['--log-level', 'error'], { TRACETALLY_DATABASE: database }));
        return;
      } catch (error) {
        words = String(error);
        await sleep(restartMs);
      }
    }
    if (!isOver) fallen.push(`does not start: ${words}`);
  }

  function moor(berth: Berth, server: ServerProcess): void {
    berth.server = server;
    berth.url = server.url;
    server.child.once('close', (code, signal) => {
      if (signal !== 'SIGKILL') fallen.push(`${code ?? signal}: ${server.stderr().slice(-2000)}`);
    });
  }

  const berths = Array.from({ length: size }, () => {
    const berth: Berth = { server: null, url: '', starting: Promise.resolve() };
    berth.starting = start(berth);
    return berth;
  });
  await Promise.all(berths.map(({ starting }) => starting));
  assert.deepEqual(fallen, []);

  return {
    urls: () => berths.map(({ url }) => url),
    killOne(random) {
      const running = berths.slice(1).filter(({ server }) => server !== null);
      const berth = running[Math.floor(random() * running.length)];
      const server = berth?.server;
      if (!berth || !server) return false;
      berth.server = null;
      berth.starting = server.end('SIGKILL').then(() => start(berth));
      return true;
    },
    async settle() {
      await Promise.all(berths.map(({ starting }) => starting));
      assert.deepEqual(fallen, [], 'servers ended without being killed');
      for (const { url } of berths) {
        const isReady = async () => (await fetch(`${url}/readyz`)).status === 200;
        await eventually(`${url} is ready`, 120_000, isReady);
      }
    },
    fallen: () => fallen,
    async end() {
      isOver = true;
      await Promise.all(berths.map(({ starting }) => starting));
      for (const { server } of berths) await server?.end('SIGKILL');
    },
  };
}

export interface FleetLoad {
  /** How many requests were acknowledged until a moment ago. */
  acknowledged(): number;
  /** Resolves when the clients have stopped and every idempotent request has its answer. Counts the answers. */
  end(): Promise<Record<string, number>>;
  /** Kills the clients if they still run. */
  drop(): void;
}

const loadProgram = fileURLToPath(new URL('fleet-load.ts', import.meta.url));

/** Starts the clients in a separate process, which is told where the servers are. */
export function startFleetLoad(
  fleet: Fleet,
  logPath: string,
  clients: number,
  seed: number,
  teams: readonly LoadTeam[],
): FleetLoad {
  const keys = teams.map(({ key }) => key);
  const args = [loadProgram, logPath, String(clients), String(seed), ...keys];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  let stdout = '';
  let acknowledged = 0;
  child.stdout?.on('data', (data: Buffer) => (stdout += data.toString()));
  child.on('message', (count: number) => (acknowledged = count));
  const tell = (): void => void (child.connected && child.send(fleet.urls()));
  tell();
  const telling = setInterval(tell, 50);
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  void ended.then(() => clearInterval(telling));
  return {
    acknowledged: () => acknowledged,
    async end() {
      child.kill('SIGTERM');
      await ended;
      assert.notEqual(stdout, '', 'the clients ended early');
      return JSON.parse(stdout) as Record<string, number>;
    },
    drop: () => void child.kill('SIGKILL'),
  };
}
