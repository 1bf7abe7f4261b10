import type { TestPostgres } from '../support/postgres.ts';
import type { LoadTeam } from './crash-lab.ts';
import { readFleetLedger } from './fleet-ledger.ts';
import type { FleetEntry } from './fleet-ledger.ts';
import { fleetRequest } from './fleet-requests.ts';

/** The ledger of the clients held against the rows of the database. */
export interface FleetBooks {
  requests: number;
  acknowledged: number;
  /** Traces in the database. */
  stored: number;
  /** Requests with a key that were acknowledged by a server that found them stored already. */
  replays: number;
  /** Plain requests that are stored though nobody was told. */
  storedUnanswered: number;
  /** Plain requests that were refused, and were not to be stored. */
  refused: number;
  /** What must not be, as sentences. */
  faults: string[];
}

interface StoredTrace {
  team_id: string;
  seq: string;
  id: string;
  name: string;
}

export async function readBooks(
  postgres: TestPostgres,
  database: string,
  ledgerPath: string,
  teams: readonly LoadTeam[],
): Promise<FleetBooks> {
  const ledger = readFleetLedger(ledgerPath);
  const rows = (await postgres.sql(
    database,
    'select team_id, seq, id, user_identifier as name from traces order by team_id, seq',
  )) as unknown as StoredTrace[];
  const found = Map.groupBy(rows, ({ name }) => name.split('/')[0] ?? '');
  const faults = ledger.flatMap((entry) => {
    const teamId = teams[entry.team]?.id ?? '';
    return faultsOf(entry, teamId, found.get(entry.nonce) ?? []);
  });
  const known = new Set(ledger.map(({ nonce }) => nonce));
  for (const nonce of found.keys()) {
    if (!known.has(nonce)) faults.push(`${nonce} is stored, and nobody has sent it`);
  }
  const count = (is: (entry: FleetEntry) => boolean): number => ledger.filter(is).length;
  return {
    requests: ledger.length,
    acknowledged: count(isAcknowledged),
    stored: rows.length,
    replays: count(({ acknowledged }) => acknowledged.some(({ isReplay }) => isReplay)),
    storedUnanswered: count((entry) => !isAcknowledged(entry) && found.has(entry.nonce)),
    refused: count(isRefused),
    faults: [...faults, ...gapsOf(rows)],
  };
}

function isAcknowledged({ acknowledged }: FleetEntry): boolean {
  return acknowledged.length > 0;
}

/** All refusals but one say that nothing was stored. */
function isRefused(entry: FleetEntry): boolean {
  const { refused } = entry;
  return !isAcknowledged(entry) && refused !== null && refused !== 'outcome_unknown';
}

function faultsOf(entry: FleetEntry, teamId: string, traces: readonly StoredTrace[]): string[] {
  const { nonce, acknowledged } = entry;
  const { traces: count, isKeyed } = fleetRequest(nonce);
  if (isKeyed && !isAcknowledged(entry)) return [`${nonce} was never acknowledged`];
  if (traces.length === 0) return isAcknowledged(entry) ? [`${nonce} is lost`] : [];
  if (isRefused(entry)) return [`${nonce} was refused and is stored`];
  const names = traces.map(({ name }) => name);
  if (new Set(names).size < names.length) return [`${nonce} is stored twice`];
  const first = Number(traces[0]?.seq);
  const isWhole = traces.every(
    ({ team_id: team, seq, name }, i) =>
      team === teamId && Number(seq) === first + i && name === `${nonce}/${i}`,
  );
  if (!isWhole || traces.length !== count) return [`${nonce} is not there whole and in order`];
  const ids = traces.map(({ id }) => id).join();
  if (acknowledged.some((told) => told.ids !== ids)) return [`${nonce} was told of other traces`];
  const asNew = acknowledged.filter(({ isReplay }) => !isReplay);
  return asNew.length > 1 ? [`${nonce} was called new by two servers`] : [];
}

/** Each team counts 1, 2, 3 … */
function gapsOf(rows: readonly StoredTrace[]): string[] {
  const faults: string[] = [];
  let last = { team: '', seq: 0 };
  for (const { team_id: team, seq } of rows) {
    const expected = team === last.team ? last.seq + 1 : 1;
    if (Number(seq) !== expected) faults.push(`team ${team}: ${seq} where ${expected} is due`);
    last = { team, seq: Number(seq) };
  }
  return faults;
}
