import type { TestPostgres } from '../support/postgres.ts';
import { readRequestLog } from '../support/request-log.ts';
import type { LoggedRequest } from '../support/request-log.ts';
import type { LoadTeam } from './crash-lab.ts';
import { fleetPost } from './fleet-requests.ts';

/** The request log of the clients, compared with the rows of the database. */
export interface FleetCheck {
  requests: number;
  acknowledged: number;
  /** Traces in the database. */
  stored: number;
  /** Idempotent requests that a server found stored already. */
  replays: number;
  /** Plain requests that are stored, though their clients got no answer. */
  storedUnanswered: number;
  /** Plain requests that failed and must not be stored. */
  failed: number;
  /** Violations of the guarantees, as sentences. */
  violations: string[];
}

interface StoredTrace {
  team_id: string;
  seq: string;
  id: string;
  name: string;
}

export async function checkFleet(
  postgres: TestPostgres,
  database: string,
  logPath: string,
  teams: readonly LoadTeam[],
): Promise<FleetCheck> {
  const requests = readRequestLog(logPath);
  const rows = (await postgres.sql(
    database,
    'select team_id, seq, id, user_identifier as name from traces order by team_id, seq',
  )) as unknown as StoredTrace[];
  const found = Map.groupBy(rows, ({ name }) => name.split('/')[0] ?? '');
  const violations = requests.flatMap((request) => {
    const teamId = teams[request.team]?.id ?? '';
    return violationsOf(request, teamId, found.get(request.name) ?? []);
  });
  const sent = new Set(requests.map(({ name }) => name));
  for (const name of found.keys()) {
    if (!sent.has(name)) violations.push(`${name} is stored, and no client has sent it`);
  }
  const count = (is: (request: LoggedRequest) => boolean): number => requests.filter(is).length;
  return {
    requests: requests.length,
    acknowledged: count(isAcknowledged),
    stored: rows.length,
    replays: count(({ acknowledged }) => acknowledged.some(({ isReplay }) => isReplay)),
    storedUnanswered: count((request) => !isAcknowledged(request) && found.has(request.name)),
    failed: count(hasFailed),
    violations: [...violations, ...gapsOf(rows)],
  };
}

function isAcknowledged({ acknowledged }: LoggedRequest): boolean {
  return acknowledged.length > 0;
}

/** All error codes but one say that nothing was stored. */
function hasFailed(request: LoggedRequest): boolean {
  const { failure } = request;
  return !isAcknowledged(request) && failure !== null && failure !== 'outcome_unknown';
}

function violationsOf(
  request: LoggedRequest,
  teamId: string,
  traces: readonly StoredTrace[],
): string[] {
  const { name, acknowledged } = request;
  const { traces: count, isIdempotent } = fleetPost(name);
  if (isIdempotent && !isAcknowledged(request)) return [`${name} was never acknowledged`];
  if (traces.length === 0) return isAcknowledged(request) ? [`${name} is lost`] : [];
  if (hasFailed(request)) return [`${name} failed and is stored`];
  const names = traces.map((trace) => trace.name);
  if (new Set(names).size < names.length) return [`${name} is stored twice`];
  const first = Number(traces[0]?.seq);
  const isWhole = traces.every(
    (trace, i) =>
      trace.team_id === teamId && Number(trace.seq) === first + i && trace.name === `${name}/${i}`,
  );
  if (!isWhole || traces.length !== count) return [`${name} is not stored whole and in order`];
  const ids = traces.map(({ id }) => id).join();
  if (acknowledged.some((reply) => reply.ids.join() !== ids))
    return [`${name} was acknowledged with other ids`];
  const asNew = acknowledged.filter(({ isReplay }) => !isReplay);
  return asNew.length > 1 ? [`${name} was acknowledged as new by two servers`] : [];
}

/** Each team counts 1, 2, 3 … */
function gapsOf(rows: readonly StoredTrace[]): string[] {
  const gaps: string[] = [];
  let last = { team: '', seq: 0 };
  for (const { team_id: team, seq } of rows) {
    const expected = team === last.team ? last.seq + 1 : 1;
    if (Number(seq) !== expected) gaps.push(`team ${team}: ${seq} instead of ${expected}`);
    last = { team, seq: Number(seq) };
  }
  return gaps;
}
