import type pg from 'pg';
import { limits } from '../../limits.ts';
import { marksToFind } from '../count-once.ts';
import { earlierFromRow, expiryOf } from '../idempotency.ts';
import type { EarlierRequest } from '../idempotency.ts';
import type { TeamCounter } from '../sequencer.ts';
import type { TraceWrite } from '../trace-writer.ts';
import { arrayOfPlain, arrayOfText } from './array-literal.ts';
import type { BatchRows } from './batch-rows.ts';
import type {
  BatchWrites,
  LockedTeam,
  MovedCounter,
  NewRequest,
  PackedWrite,
} from './batch-writes.ts';
import { beginOn, run } from './connection.ts';
import type { Begin, Row, Values } from './connection.ts';
import { ofManyTeams } from './many-teams-statements.ts';
import { counterFromRow } from './marks-rows.ts';
import type { Answer, Statement } from './wire-call.ts';
import { fewOfOneTeam, ofOneTeam } from './statements.ts';
import { TraceColumns } from './trace-columns.ts';
import { TraceRecords } from './trace-records.ts';
import type { KnownRecordTypes } from './trace-records.ts';

/** The statements of a transaction that stores a batch. */
export interface BatchStatements {
  /** Begins the transaction, locks the counters of the teams and finds earlier requests, in one round trip if the counters exist. */
  begin(
    client: pg.ClientBase,
    writes: readonly PackedWrite[],
    wallUs: number,
  ): Promise<LockedTeams>;
  /** Collects the rows of the batch. */
  rows(): BatchRows;
  /** What is sent with the commit. */
  write(batch: BatchWrites, wallUs: number): Statement[];
}

/** A function that stores a batch in one round trip. The call is a transaction by itself. */
export interface AtOnceStatements {
  rows(): BatchRows;
  call(batch: BatchWrites, wallUs: number): Statement;
  /** Whether the call has stored the batch. If not, it has stored nothing. */
  isStored(answer: Answer): boolean;
  /** Whether the batch may be stored after this error, which came after the answer of the call or in its place. */
  isDoubtful(error: Error, isAnswered: boolean): boolean;
}

/** By team. Teams that are missing are locked by another transaction. */
export type LockedTeams = Map<string, LockedTeam>;

/** One team per transaction: on a Citus cluster such a transaction stays on one node. */
export function oneTeamStatements(begin: Begin, teamId: string): BatchStatements {
  return {
    async begin(client, writes, wallUs) {
      const keyHashes = writes.flatMap(({ write }) => keysToFind(write));
      const findRequests = async (): Promise<Map<string, EarlierRequest>> => {
        if (keyHashes.length === 0) return new Map();
        const { rows } = await run(client, ofOneTeam.findRequests, [teamId, keyHashes, wallUs]);
        return byKeyHash(rows);
      };
      const [, found, earlier] = await Promise.all([
        beginOn(client, begin),
        run(client, ofOneTeam.lockCounter, [teamId]),
        findRequests(),
      ]);
      const [row] = found.rows;
      if (row) return new Map([[teamId, lockedTeam(row, earlier)]]);
      const counter = await lockTeam(client, teamId);
      // Another transaction may have stored the team's first request in the meantime.
      return new Map([[teamId, { counter, fence: 0, earlier: await findRequests() }]]);
    },

    rows: () => new TraceColumns(),

    write(batch, wallUs) {
      const [counter] = batch.counters();
      const requests = requestsOf(teamId, batch, wallUs);
      return [
        ...(counter ? insertsOf(teamId, batch.rows) : []),
        ...(requests
          ? ([requests.forget, [ofOneTeam.takeRequests, requests.values]] satisfies Statement[])
          : []),
        ...(counter
          ? [[ofOneTeam.moveCounter, [teamId, counter.lastSeq, counter.lastUs]] satisfies Statement]
          : []),
      ];
    },
  };
}

function insertsOf(teamId: string, rows: BatchRows): Statement[] {
  const { traceCount, payloadCount } = rows;
  const intoTraces = fewOfOneTeam.traces[traceCount - 1] ?? ofOneTeam.insertTraces;
  const intoPayloads = fewOfOneTeam.payloads[payloadCount - 1] ?? ofOneTeam.insertPayloads;
  return [
    [intoTraces, [teamId, ...rows.traceValues()]],
    ...(payloadCount > 0
      ? [[intoPayloads, [teamId, ...rows.payloadValues()]] satisfies Statement]
      : []),
  ];
}

/** Null if there are none. */
function requestsOf(teamId: string, { requests }: BatchWrites, wallUs: number) {
  if (requests.length === 0) return null;
  const forget: Statement = [
    ofOneTeam.forgetRequests,
    [teamId, String(wallUs), String(sweepOfTeam(requests))],
  ];
  const values = [teamId, ...requestColumns(requests, wallUs)];
  return { forget, values };
}

const waitBriefly = `set local lock_timeout = ${limits.postgresSharedLockMsMax}`;
const waitAsUsual = `set local lock_timeout = ${limits.postgresLockMsMax}`;

/**
 * All teams in one transaction. If `skipsLocked`, teams that another transaction has locked are left out; otherwise a counter that is
 * not free within a moment fails the transaction. All other locks, such as those of an index that is being built, are waited for as
 * usual, since no other transaction would get them sooner.
 */
export function manyTeamsStatements(
  begin: Begin,
  types: KnownRecordTypes,
  skipsLocked: boolean,
): BatchStatements {
  return {
    async begin(client, writes, wallUs) {
      const teamIds = [...new Set(writes.map(({ write }) => write.teamId))];
      const requested = writes.flatMap(({ write }) =>
        keysToFind(write).map((keyHash) => ({ teamId: write.teamId, keyHash })),
      );
      const findRequests = async (): Promise<Row[]> => {
        if (requested.length === 0) return [];
        const { rows } = await run(client, ofManyTeams.findRequests, [
          requested.map(({ teamId }) => teamId),
          requested.map(({ keyHash }) => keyHash),
          wallUs,
        ]);
        return rows;
      };
      if (skipsLocked) {
        const [, free, requests] = await Promise.all([
          beginOn(client, begin),
          run(client, ofManyTeams.lockFreeCounters, [teamIds]),
          findRequests(),
        ]);
        return lockedTeams(free.rows, requests);
      }
      const [, locked, earlier] = await Promise.all([
        beginOn(client, [...begin, waitBriefly]),
        run(client, ofManyTeams.lockCounters, [teamIds]),
        findRequests(),
        run(client, waitAsUsual),
      ]);
      const teams = lockedTeams(locked.rows, earlier);
      const missing = teamIds.filter((teamId) => !teams.has(teamId));
      if (missing.length === 0) return teams;
      // Teams without traces. Another transaction may have stored their first ones in the meantime.
      const [, , added, again] = await Promise.all([
        run(client, waitBriefly),
        run(client, ofManyTeams.addCounters, [missing]),
        run(client, ofManyTeams.lockCounters, [missing]),
        findRequests(),
        run(client, waitAsUsual),
      ]);
      return lockedTeams([...locked.rows, ...added.rows], again);
    },

    rows: () => new TraceRecords(types.current),

    write(batch, wallUs) {
      const counters = batch.counters();
      const { rows, requests } = batch;
      return [
        ...(rows.traceCount > 0
          ? [[ofManyTeams.insertTraces, rows.traceValues()] satisfies Statement]
          : []),
        ...(rows.payloadCount > 0
          ? [[ofManyTeams.insertPayloads, rows.payloadValues()] satisfies Statement]
          : []),
        ...(requests.length > 0
          ? ([
              forgetRequests(requests, wallUs),
              [ofManyTeams.takeRequests, requestValues(requests, wallUs)],
            ] satisfies Statement[])
          : []),
        ...(counters.length > 0
          ? [[ofManyTeams.moveCounters, counterValues(counters)] satisfies Statement]
          : []),
      ];
    },
  };
}

/** The parameters of `moveCounters`. */
export function counterValues(counters: readonly MovedCounter[]): Values {
  return [
    arrayOfPlain(counters.map(({ teamId }) => teamId)),
    arrayOfPlain(counters.map(({ lastSeq }) => lastSeq)),
    arrayOfPlain(counters.map(({ lastUs }) => lastUs)),
  ];
}

function forgetRequests(requests: readonly NewRequest[], wallUs: number): Statement {
  const teamIds = new Set(requests.map(({ teamId }) => teamId));
  const sweepMax = Math.max(limits.postgresSharedSweepRowsMax, 2 * requests.length);
  return [
    ofManyTeams.forgetRequests,
    [arrayOfPlain([...teamIds]), String(wallUs), String(sweepOfTeam(requests)), String(sweepMax)],
  ];
}

/** The parameters of `takeRequests` for many teams. */
function requestValues(requests: readonly NewRequest[], wallUs: number): Values {
  return [arrayOfPlain(requests.map(({ teamId }) => teamId)), ...requestColumns(requests, wallUs)];
}

/** The idempotency key of a write, and the marks of its calls. */
function keysToFind({ request, calls }: TraceWrite): string[] {
  return [...(request ? [request.keyHash] : []), ...(calls ? marksToFind(calls) : [])];
}

/** Waits until no other transaction of the team is in progress. If the team has no traces yet, its sequence starts at `firstSeq`. */
export async function lockTeam(
  client: pg.ClientBase,
  teamId: string,
  firstSeq = 1,
): Promise<TeamCounter> {
  const [found] = (await run(client, ofOneTeam.lockCounter, [teamId])).rows;
  if (found) return counterFromRow(found);
  // The team's first trace. If another transaction is adding the row too, this waits for it.
  await run(client, ofOneTeam.addCounter, [teamId, firstSeq]);
  return lockTeam(client, teamId);
}

function lockedTeam(row: Row, earlier: Map<string, EarlierRequest> = new Map()): LockedTeam {
  return { counter: counterFromRow(row), fence: row['fence'] as number, earlier };
}

function lockedTeams(counters: readonly Row[], earlier: readonly Row[]): LockedTeams {
  const teams: LockedTeams = new Map(
    counters.map((row) => [row['team_id'] as string, lockedTeam(row)]),
  );
  for (const row of earlier) {
    teams
      .get(row['team_id'] as string)
      ?.earlier.set(row['key_hash'] as string, earlierFromRow(row));
  }
  return teams;
}

function byKeyHash(rows: readonly Row[]): Map<string, EarlierRequest> {
  return new Map(rows.map((row) => [row['key_hash'] as string, earlierFromRow(row)]));
}

/** How many expired rows are removed: twice as many as are added, so that the table does not grow without end. */
export function sweepOfTeam(requests: readonly NewRequest[]): number {
  return Math.max(limits.idempotencySweepRowsMax, 2 * requests.length);
}

/** The parameters of `takeRequests` after the team. */
function requestColumns(requests: readonly NewRequest[], wallUs: number): Values {
  return [
    arrayOfText(requests.map(({ request }) => request.keyHash)),
    arrayOfText(requests.map(({ request }) => request.bodyHash)),
    arrayOfPlain(requests.map(({ firstSeq }) => firstSeq)),
    arrayOfPlain(requests.map(({ count }) => count)),
    arrayOfText(requests.map(({ request }) => request.rejected)),
    arrayOfPlain(requests.map(() => expiryOf(wallUs))),
  ];
}
