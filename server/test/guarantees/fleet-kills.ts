import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../support/eventually.ts';
import type { TestPostgres } from '../support/postgres.ts';

/** Ways to break PostgreSQL. Each resolves when it answers again. */
export interface PostgresKills {
  /** Terminates some connections of the servers; returns how many. */
  cutConnections(): Promise<number>;
  /** SIGKILL to the process of one connection: PostgreSQL then ends all the others and restarts. */
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
  /** Asks until there is a row: PostgreSQL may be just starting, or no server is connected to it yet. */
  async function ask(text: string): Promise<Record<string, unknown>> {
    let last = 'no row';
    const look = async () => {
      try {
        return (await postgres.sql(database, text))[0];
      } catch (error) {
        last = String(error);
        return null;
      }
    };
    return eventually(() => `a row of ${text} (${last})`, answerMsMax, look, 10);
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
      const pid = await eventually('a process of a connection', answerMsMax, async () => {
        const found = Number((await ask(`${connections} limit 1`))['pid']);
        // One that has just ended by itself does not count.
        return parentOf(found) === postmaster && found;
      });
      process.kill(pid, 'SIGKILL');
      // Until the postmaster has noticed, nothing has happened yet.
      await eventually(
        'the end of the process',
        answerMsMax,
        () => parentOf(pid) !== postmaster,
        5,
      );
      await ask('select 1');
    },
    async killAll(pauseMs) {
      await postgres.kill();
      await sleep(pauseMs);
      await postgres.start();
    },
  };
}

/** Null if there is no such process. */
function parentOf(pid: number): number | null {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/^PPid:\s*(\d+)$/m.exec(status)?.[1]);
  } catch {
    return null;
  }
}
