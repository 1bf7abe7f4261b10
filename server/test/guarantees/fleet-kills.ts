import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestPostgres } from '../support/postgres.ts';

/** What can befall a PostgreSQL. Each resolves when it answers again. */
export interface PostgresKills {
  /** Ends some connections of the servers the soft way; tells how many. */
  cutConnections(): Promise<number>;
  /** SIGKILL to the process of one connection: PostgreSQL then ends all the others and starts anew. */
  killBackend(): Promise<void>;
  /** SIGKILL to all its processes at once, and a start after a pause. */
  killAll(pauseMs: number): Promise<void>;
}

/** Busy ones first: a connection that idles has nothing to lose. */
const connections = `
  select pid from pg_stat_activity where application_name = 'tracetally' and datname = current_database()
  order by (state = 'active') desc, random()`;

const answerMsMax = 60_000;

export function openPostgresKills(postgres: TestPostgres, database: string): PostgresKills {
  /** Asks until there is something to see: PostgreSQL may be just starting, or no server is connected to it yet. */
  async function ask(text: string): Promise<Record<string, unknown>> {
    let fault: unknown = new Error(`nothing to see: ${text}`);
    const untilMs = performance.now() + answerMsMax;
    while (performance.now() < untilMs) {
      try {
        const [row] = await postgres.sql(database, text);
        if (row) return row;
      } catch (error) {
        fault = error;
      }
      await sleep(10);
    }
    throw fault;
  }

  async function findPostmaster(): Promise<number> {
    const folder = String((await ask('show data_directory'))['data_directory']);
    return Number.parseInt(readFileSync(join(folder, 'postmaster.pid'), 'utf8'), 10);
  }

  return {
    async cutConnections() {
      const { cut } = await ask(`
        select count(*) filter (where pg_terminate_backend(pid)) as cut from (${connections} limit 4) as busiest`);
      return Number(cut);
    },
    async killBackend() {
      const postmaster = await findPostmaster();
      let pid = 0;
      // One that has just ended by itself does not count.
      while (parentOf(pid) !== postmaster) {
        pid = Number((await ask(`${connections} limit 1`))['pid']);
      }
      process.kill(pid, 'SIGKILL');
      // As long as the postmaster has not heard of it, nothing has happened yet.
      while (parentOf(pid) === postmaster) await sleep(5);
      await ask('select 1');
    },
    async killAll(pauseMs) {
      const postmaster = await findPostmaster();
      const children = processes().filter((pid) => parentOf(pid) === postmaster);
      const ended = postgres.kill();
      for (const pid of children) killIfThere(pid);
      await ended;
      await sleep(pauseMs);
      await postgres.start();
    },
  };
}

function processes(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** Null where there is no such process. */
function parentOf(pid: number): number | null {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/^PPid:\s*(\d+)$/m.exec(status)?.[1]);
  } catch {
    return null;
  }
}

/** Without its postmaster a process of PostgreSQL ends by itself, and may have been quicker. */
function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
