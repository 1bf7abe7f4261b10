import { callService } from '../../test/support/http-call.ts';
import type { LoggedRequest } from '../../test/support/request-log.ts';

/** What the store holds, compared with what was acknowledged. */
export interface StoreCheck {
  acknowledged: number;
  stored: number;
  /** Ids that were acknowledged and are not in any page of their team. */
  lost: string[];
  /** Names that are stored more than once. */
  twice: string[];
  /** Teams whose overview does not count what their pages show. */
  miscounted: number;
}

const withinMs = 60_000;
const pageRows = 100;

interface Page {
  traces: { id: string; user_identifier: string | null }[];
  total: number;
}

/** Reads all traces of all teams, page by page, while nothing is written. */
export async function checkStore(
  url: string,
  teams: readonly { key: string }[],
  requests: readonly LoggedRequest[],
): Promise<StoreCheck> {
  const check: StoreCheck = {
    acknowledged: requests.flatMap(acknowledgedIds).length,
    stored: 0,
    lost: [],
    twice: [],
    miscounted: 0,
  };
  const byTeam = Map.groupBy(requests, ({ team }) => team);
  for (const [team, { key }] of teams.entries()) {
    const { ids, names } = await readTeam(url, key);
    check.stored += ids.size;
    const acknowledged = (byTeam.get(team) ?? []).flatMap(acknowledgedIds);
    check.lost.push(...acknowledged.filter((id) => !ids.has(id)));
    check.twice.push(...[...names].filter(([, times]) => times > 1).map(([name]) => name));
    const overview = await readJson<{ total_calls: number }>(url, key, '/analytics/overview');
    if (overview.total_calls !== ids.size) check.miscounted += 1;
  }
  return check;
}

function acknowledgedIds({ acknowledged }: LoggedRequest): string[] {
  return acknowledged.flatMap(({ ids }) => ids);
}

async function readTeam(
  url: string,
  key: string,
): Promise<{ ids: Set<string>; names: Map<string, number> }> {
  const ids = new Set<string>();
  const names = new Map<string, number>();
  for (let page = 1, total = 1; (page - 1) * pageRows < total; page++) {
    const query = `page=${page}&limit=${pageRows}&omit=input,output,error_message`;
    const found = await readJson<Page>(url, key, `/traces?${query}`);
    total = found.total;
    for (const { id, user_identifier: name } of found.traces) {
      ids.add(id);
      if (name !== null) names.set(name, (names.get(name) ?? 0) + 1);
    }
  }
  return { ids, names };
}

async function readJson<T>(url: string, key: string, path: string): Promise<T> {
  const { status, text } = await callService(url, { path, key, withinMs });
  if (status !== 200) throw new Error(`${path} answered ${status}: ${text}`);
  return JSON.parse(text) as T;
}
