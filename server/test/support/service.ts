import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig } from '../../src/config.ts';
import { dailyQuery, onlyMeasures, overviewQuery } from '../../src/core/analytics.ts';
import { calendarOf } from '../../src/core/calendar.ts';
import type { ClockSource } from '../../src/core/clock.ts';
import type { Scope } from '../../src/core/api-key.ts';
import type { Measures } from '../../src/core/measures.ts';
import type { Tally, TallyQuery } from '../../src/core/query.ts';
import type { LabelName } from '../../src/core/trace-fields.ts';
import { startService } from '../../src/main.ts';
import { makeKey } from '../../src/store/teams-and-keys.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Database } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import type { TraceReader } from '../../src/store/trace-reader.ts';
import { databaseIn, readStoreBytes, rollupPlace, runSql } from './store-place.ts';

/** A folder that goes away with the test. */
export function temporaryFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'tracetally-test-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Microseconds of a moment, for clocks that are set by hand. */
export function us(iso: string): number {
  return Date.parse(iso) * 1000;
}

export interface ManualClock {
  source: ClockSource;
  set(nowUs: number): void;
}

/** A clock that stands still until it is set, seen by every thread. */
export function manualClock(startUs: number): ManualClock {
  const buffer = new SharedArrayBuffer(8);
  const cell = new BigInt64Array(buffer);
  const set = (nowUs: number): void => void Atomics.store(cell, 0, BigInt(nowUs));
  set(startUs);
  return { source: { kind: 'manual', cell: buffer }, set };
}

export interface KeyHolder {
  teamId: string;
  team: string;
  key: string;
  keyId: string;
}

export interface TestService {
  url: string;
  metricsUrl: string | null;
  firstKey: string | null;
  store: Database['kind'];
  /** The file, if the store is SQLite. */
  databasePath: string;
  /** The same store, opened a second time, as the command line does. */
  beside: Store;
  /** One SQL statement on a separate connection. */
  sql(text: string): Promise<Record<string, unknown>[]>;
  /** The same where rollups are stored. */
  rollupSql(text: string): Promise<Record<string, unknown>[]>;
  /** Every byte of the store's files. */
  bytesOnDisk(): Promise<Buffer>;
  /** Everything that was logged, as text. */
  log(): string;
  /** A fresh team with a key; or one more key for a team that exists. */
  keyFor(
    team?: string,
    wishes?: { scope?: Scope; expiresAtUs?: number | null },
  ): Promise<KeyHolder>;
  /** One HTTP request with the key, over a real socket. */
  call(
    key: string | null,
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer>;
  stop(): Promise<void>;
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  json: any; // oxlint-disable-line typescript/no-explicit-any
}

export interface TestServiceOptions {
  /** Flags as on the command line, without the dashes. */
  flags?: Record<string, string>;
  env?: Record<string, string>;
  clock?: ManualClock;
  /** A folder that outlives the service, to start on it again. */
  folder?: string;
}

let teams = 0;

/** A real service on a free port, in this process, on its own store: a file, or a database if the tests run on PostgreSQL. */
export async function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  const folder =
    options.folder === undefined ? temporaryFolder() : { path: options.folder, remove() {} };
  const lines: string[] = [];
  const flags = {
    port: '0',
    database: options.flags?.['database'] ?? (await databaseIn(folder.path)),
    'log-level': 'debug',
    ...options.flags,
  };
  const config = readConfig(flags, options.env ?? {});
  const clock = options.clock?.source ?? { kind: 'system' as const };
  const service = await startService(config, clock, { write: (line) => void lines.push(line) });
  const beside = await openStore(config.database, { clock, role: 'tool' });

  return {
    url: service.url,
    metricsUrl: service.metricsUrl,
    firstKey: service.first?.key ?? null,
    store: config.database.kind,
    databasePath: join(folder.path, 'tracetally.db'),
    beside,
    sql: (text) => runSql(config.database, text),
    rollupSql: (text) => runSql(rollupPlace(config.database), text),
    bytesOnDisk: () => readStoreBytes(config.database),
    log: () => lines.join(''),
    async keyFor(team = `team-${++teams}`, { scope = 'full', expiresAtUs = null } = {}) {
      const nowUs = Date.now() * 1000;
      const { key, record } = makeKey({ name: null, scope, nowUs, expiresAtUs });
      const { team: found } = await beside.ensureTeam(team, nowUs);
      await beside.createKey(found.id, record);
      return { teamId: found.id, team, key, keyId: record.id };
    },
    async call(key, method, path, body, headers = {}) {
      const isRaw = typeof body === 'string' || body instanceof Uint8Array;
      const response = await fetch(`${service.url}${path}`, {
        method,
        headers: {
          ...(key === null ? {} : { authorization: `Bearer ${key}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: isRaw ? (body as string) : JSON.stringify(body) }),
      });
      const text = await response.text();
      const isJson = response.headers.get('content-type')?.includes('json') ?? false;
      return {
        status: response.status,
        headers: response.headers,
        text,
        json: isJson && text !== '' ? JSON.parse(text) : null,
      };
    },
    async stop() {
      await beside.close();
      await service.stop({ notice: false });
      folder.remove();
    },
  };
}

/** Sums over all traces of a team. */
export async function totalOf(store: TraceReader, teamId: string): Promise<Measures> {
  return onlyMeasures(await talliesOf(store, teamId, overviewQuery));
}

/** The groups that have a value of the field. */
export function groupsOf(store: TraceReader, teamId: string, field: LabelName): Promise<Tally[]> {
  const filter = { [field]: 'set' } as const;
  return talliesOf(store, teamId, { filter, groupBy: [field], range: null, interval: null });
}

/** The days with calls of the daily series that ends at this time, oldest first. */
export async function daysOf(store: TraceReader, teamId: string, nowUs: number): Promise<Tally[]> {
  const calendar = calendarOf(await store.timeZone(teamId));
  const days = await talliesOf(store, teamId, dailyQuery(nowUs, calendar));
  return days.sort((a, b) => (a.startUs ?? 0) - (b.startUs ?? 0));
}

/** All tallies at once, for tests that have few. */
export async function talliesOf(
  store: TraceReader,
  teamId: string,
  query: TallyQuery,
): Promise<Tally[]> {
  const { first, rest } = await store.tallies(teamId, query);
  const tallies = [...first];
  for await (const chunk of rest ?? []) tallies.push(...chunk);
  return tallies;
}
