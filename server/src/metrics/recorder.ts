import type { Trace } from '../core/trace.ts';
import { errorTable } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';
import { CountsByName, Distribution } from './counts.ts';
import { bounds } from './declarations.ts';
import { TeamUsage } from './team-usage.ts';

const errorCodes = Object.keys(errorTable);
/** The usual ones. */
const storeErrorCodes: readonly ErrorCode[] = [
  'disk_full',
  'store_unavailable',
  'outcome_unknown',
  'internal',
];

/** The requests of one route. */
export class RouteCounts {
  readonly byStatus = new Map<number, number>();
  readonly seconds = new Distribution(bounds.seconds);

  note(status: number, tookMs: number): void {
    this.byStatus.set(status, (this.byStatus.get(status) ?? 0) + 1);
    this.seconds.observe(tookMs / 1000);
  }
}

interface Commit {
  rows: number;
  bytes: number;
  tookMs: number;
}

interface Roll {
  rows: number;
  tookMs: number;
}

/** Counts what the service does. It is told of each event in one place: the request hook, the failure log, admission, the store's events. */
export class Recorder {
  readonly routes = new Map<string, { method: string; route: string; counts: RouteCounts }>();
  readonly failures = new CountsByName(errorCodes);
  /** How often a caller was found in the cache or had to be looked up in the store. */
  readonly keyLookups = { api_key: { hit: 0, miss: 0 }, session: { hit: 0, miss: 0 } };
  readonly signals = new CountsByName(['stored', 'duplicate', 'skipped', 'rejected']);
  readonly storeErrors = new CountsByName(storeErrorCodes);
  readonly commits = {
    seconds: new Distribution(bounds.seconds),
    rows: new Distribution(bounds.rows),
    bytes: new Distribution(bounds.bytes),
  };
  readonly rolls = { rows: 0, failures: 0, seconds: new Distribution(bounds.seconds) };
  /** Null if it is off. */
  readonly teamUsage: TeamUsage | null;
  tracesStored = 0;
  isBroken = false;
  tailRows = 0;

  constructor(teamsMax: number | null) {
    this.teamUsage = teamsMax === null ? null : new TeamUsage(teamsMax);
  }

  /** The counts of a route. Looked up once per route, not per request. */
  route(method: string, route: string): RouteCounts {
    return this.routes.getOrInsertComputed(`${method} ${route}`, () => ({
      method,
      route,
      counts: new RouteCounts(),
    })).counts;
  }

  noteSignals(counts: object): void {
    for (const [result, count] of Object.entries(counts)) this.signals.add(result, count as number);
  }

  noteStored(teamId: string, traces: readonly Trace[]): void {
    this.tracesStored += traces.length;
    this.teamUsage?.add(teamId, traces);
  }

  noteFailedWrite(code: ErrorCode): void {
    this.storeErrors.add(code);
  }

  noteCommit({ rows, bytes, tookMs }: Commit): void {
    this.commits.seconds.observe(tookMs / 1000);
    this.commits.rows.observe(rows);
    this.commits.bytes.observe(bytes);
    // Until the next report, these are in the tails.
    this.tailRows += rows;
  }

  noteRoll({ tailRows, roll }: { tailRows: number; roll: Roll | null }): void {
    this.tailRows = tailRows;
    if (roll === null) return;
    this.rolls.seconds.observe(roll.tookMs / 1000);
    this.rolls.rows += roll.rows;
  }
}
