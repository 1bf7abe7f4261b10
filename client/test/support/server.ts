import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from '../../../server/src/store/open-store.ts';
import { makeKey } from '../../../server/src/store/teams-and-keys.ts';
import { spawnServer } from '../../../server/test/support/cli.ts';
import type { ServerProcess } from '../../../server/test/support/cli.ts';

export interface LiveServer {
  url: string;
  /** A key for a team that no other test uses. */
  freshKey(scope?: 'full' | 'ingest' | 'read'): Promise<string>;
  /** Kills it and starts it again, at the same address and on the same file. */
  crashAndRestart(): Promise<void>;
  stop(): Promise<void>;
}

let teams = 0;
const clock = { kind: 'system' } as const;

/** The real server in a process of its own, on a free port and an empty store. */
export async function startServer(flags: readonly string[] = []): Promise<LiveServer> {
  const folder = mkdtempSync(join(tmpdir(), 'tracetally-client-'));
  const path = join(folder, 'tracetally.db');
  const start = (more: readonly string[]): Promise<ServerProcess> =>
    spawnServer(['--database', `sqlite:${path}`, '--log-level', 'warn', ...flags, ...more]);
  let server = await start([]);
  const { url } = server;
  return {
    url,
    async freshKey(scope = 'full') {
      // What `tracetally keys create` does, without the start of a process for each key.
      const store = await openStore({ kind: 'sqlite', path }, { clock, role: 'tool' });
      try {
        const nowUs = Date.now() * 1000;
        const { key, record } = makeKey({ name: null, scope, nowUs, expiresAtUs: null });
        const { team } = await store.ensureTeam(`team-${++teams}`, nowUs);
        await store.createKey(team.id, record);
        return key;
      } finally {
        await store.close();
      }
    },
    async crashAndRestart() {
      await server.end('SIGKILL');
      server = await start(['--port', new URL(url).port]);
    },
    async stop() {
      await server.end('SIGTERM');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A URL at which nothing listens. */
export async function unusedUrl(): Promise<string> {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const { port } = holder.address() as AddressInfo;
  holder.close();
  await once(holder, 'close');
  return `http://127.0.0.1:${port}`;
}
