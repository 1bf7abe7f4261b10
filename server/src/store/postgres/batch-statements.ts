import type pg from 'pg';
import { limits } from '../../limits.ts';
import { marksToFind } from '../count-once.ts';
import { expiryOf } from '../idempotency.ts';
import type { EarlierRequest } from '../idempotency.ts';
import { earlierFromRow } from '../key-rows.ts';
import type { TeamCounter } from '../sequencer.ts';
import type { TraceWrite } from '../trace-writer.ts';
import type { BatchWrites, LockedTeam, NewRequest, PackedWrite } from './batch-writes.ts';
import { run } from './connection.ts';
import type { Row, Values } from './connection.ts';
import { counterFromRow } from './marks-rows.ts';
import { ofManyTeams, ofOneTeam } from './statements.ts';

export type Statement = [text: string, values: Values];

/** The statements of a transaction that stores a batch. */
export interface BatchStatements {
  /** Begins the transaction, locks the counters of the teams and finds earlier requests, in one round trip if the counters exist. */
  begin(
    client: pg.ClientBase,
    writes: readonly PackedWrite[],
    wallUs: number,
  ): Promise<LockedTeams>;
  /** What is sent with the commit. */
  write(batch: BatchWrites, wallUs: number): Statement[];
}

/** By team. Teams that are missing are locked by another transaction. */
export type LockedTeams = Map<string, LockedTeam>;

/** One team per transaction: on a Citus cluster such a transaction stays on one node. */
export function oneTeamStatements(begin: string, teamId: string): BatchStatements {
  return {
    async begin(client, writes, wallUs) {
      const keyHashes = writes.flatMap(({ write }) => keysToFind(write));
      const findRequests = async (): Promise<Map<string, EarlierRequest>> => {
        if (keyHashes.length === 0) return new Map();
        const { rows } = await run(client, ofOneTeam.findRequests, [teamId, keyHashes, wallUs]);
        return byKeyHash(rows);
      };
      const [, found, earlier] = await Promise.all([
        run(client, begin),
        run(client, ofOneTeam.lockCounter, [teamId]),
        findRequests(),
      ]);
      const [row] = found.rows;
      if (row) return new Map([[teamId, { counter: counterFromRow(row), earlier }]]);
      const counter = await lockTeam(client, teamId);
      // Another transaction may have stored the team's first request in the meantime.
      return new Map([[teamId, { counter, earlier: await findRequests() }]]);
    },

    write(batch, wallUs) {
      const [counter] = batch.counters();
      if (!counter) return [];
      const { traces, requests } = batch;
      return [
        [ofOneTeam.insertTraces, [teamId, ...traces.traceValues()]],
        ...(traces.hasPayloads
          ? [[ofOneTeam.insertPayloads, [teamId, ...traces.payloadValues()]] satisfies Statement]
          : []),
        ...(requests.length > 0
          ? ([
              [ofOneTeam.forgetRequests, [teamId, wallUs, sweepOfTeam(requests)]],
              [ofOneTeam.takeRequests, [teamId, ...requestColumns(requests, wallUs)]],
            ] satisfies Statement[])
          : []),
        [ofOneTeam.moveCounter, [teamId, counter.lastSeq, counter.lastUs]],
      ];
    },
  };
}

const waitBriefly = `set local lock_timeout = ${limits.postgresSharedLockMsMax}`;
const waitAsUsual = `set local lock_timeout = ${limits.postgresLockMsMax}`;

/**
 * All teams in one transaction. If `skipsLocked`, teams that another transaction has locked are left out; otherwise a counter that is
 * not free within a moment fails the transaction. All other locks, such as those of an index that is being built, are waited for as
 * usual, since no other transaction would get them sooner.
 */
export function manyTeamsStatements(begin: string, skipsLocked: boolean): BatchStatements {
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
          run(client, begin),
          run(client, ofManyTeams.lockFreeCounters, [teamIds]),
          findRequests(),
        ]);
        return lockedTeams(free.rows, requests);
      }
      const [, locked, earlier] = await Promise.all([
        run(client, `${begin}; ${waitBriefly}`),
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

    write(batch, wallUs) {
      const counters = batch.counters();
      if (counters.length === 0) return [];
      const { traces, requests } = batch;
      const teamIds = counters.map(({ teamId }) => teamId);
      return [
        [ofManyTeams.insertTraces, [traces.traceTeams(), ...traces.traceValues()]],
        ...(traces.hasPayloads
          ? [
              [
                ofManyTeams.insertPayloads,
                [traces.payloadTeams(), ...traces.payloadValues()],
              ] satisfies Statement,
            ]
          : []),
        ...(requests.length > 0
          ? ([
              [
                ofManyTeams.forgetRequests,
                [
                  [...new Set(requests.map(({ teamId }) => teamId))],
                  wallUs,
                  sweepOfTeam(requests),
                  Math.max(limits.postgresSharedSweepRowsMax, 2 * requests.length),
                ],
              ],
              [
                ofManyTeams.takeRequests,
                [requests.map(({ teamId }) => teamId), ...requestColumns(requests, wallUs)],
              ],
            ] satisfies Statement[])
          : []),
        [
          ofManyTeams.moveCounters,
          [teamIds, counters.map(({ lastSeq }) => lastSeq), counters.map(({ lastUs }) => lastUs)],
        ],
      ];
    },
  };
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

function lockedTeams(counters: readonly Row[], earlier: readonly Row[]): LockedTeams {
  const teams: LockedTeams = new Map(
    counters.map((row) => [
      row['team_id'] as string,
      { counter: counterFromRow(row), earlier: new Map() },
    ]),
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
function sweepOfTeam(requests: readonly NewRequest[]): number {
  return Math.max(limits.idempotencySweepRowsMax, 2 * requests.length);
}

/** The parameters of `takeRequests` after the team. */
function requestColumns(requests: readonly NewRequest[], wallUs: number): Values {
  return [
    requests.map(({ request }) => request.keyHash),
    requests.map(({ request }) => request.bodyHash),
    requests.map(({ firstSeq }) => firstSeq),
    requests.map(({ count }) => count),
    requests.map(({ request }) => request.rejected),
    requests.map(() => expiryOf(wallUs)),
  ];
}
