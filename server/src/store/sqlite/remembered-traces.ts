import type { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { groupFields } from '../../core/dimensions.ts';
import type { GroupField } from '../../core/dimensions.ts';
import { eventUs } from '../../core/rollup.ts';
import type { CountedTrace } from '../../core/rollup.ts';
import { isInRange, matcherOf } from '../../core/query.ts';
import type { TallyQuery, TimeRange } from '../../core/query.ts';
import { RecentMap } from '../../core/recent-map.ts';
import { limits } from '../../limits.ts';
import { lookUpAll, lookupQuestion } from '../trace-lookups.ts';
import type { LookupField } from '../trace-lookups.ts';
import { matchingRows, prepareArrays } from './counted-traces.ts';
import type { RowValues } from './counted-traces.ts';
import { eventTime } from './criteria-sql.ts';
import { seqOfRowId, teamOfRowId } from './row-id.ts';
import type { TeamSnapshot } from './team-snapshot.ts';
import { prepareLookups } from './trace-lookups.ts';

/** A user: the filters of sessions and runs are not among the remembered fields. */
interface LookedUp {
  field: LookupField;
  value: string;
}

/** The traces of a value up to a sequence number. */
interface Remembered {
  /** Changes with their costs, and when the lookups were repaired. */
  version: string;
  lastSeq: number;
  traces: { seq: number; trace: CountedTrace }[];
}

/**
 * Remembers the traces of a busy user: the dashboard asks several questions about the same ones at once, and reading them takes far longer
 * than adding them up. Traces never change, except for their costs, so only new ones have to be read.
 */
export class RememberedTraces {
  readonly #db: DatabaseSync;
  readonly #lookUp;
  readonly #readCosts;
  readonly #values = new RecentMap<Remembered>(
    limits.rememberedTracesMax,
    ({ traces }) => traces.length,
  );
  /** The last question about each value. The next one waits until it has read what is new. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#lookUp = prepareLookups(db, false);
    this.#readCosts = prepareArrays(
      db,
      `select count(*) || ' ' || total(done_seq) from reprice_runs where team_id = (select id from teams where no = ?)`,
    );
  }

  /** The traces of the snapshot that match the query. Null if they are not remembered, and better read in another way. */
  async matching(team: TeamSnapshot, query: TallyQuery): Promise<Iterable<CountedTrace> | null> {
    const { field, values } = lookupQuestion(query.filter) ?? { values: [] };
    const [value, ...others] = values;
    if (field === undefined || value === undefined || others.length > 0) return null;
    const fields = Object.keys(query.filter);
    if (!fields.every((name) => groupFields.includes(name as GroupField))) return null;
    const name = `${team.teamNo} ${field} ${value}`;
    const before = this.#turns.get(name);
    const turn = (async () => {
      await before?.catch(() => {});
      return this.#upTo(team, name, { field, value }, query.range);
    })();
    this.#turns.set(name, turn);
    try {
      const remembered = await turn;
      return remembered && matchingOf(remembered, team, query);
    } finally {
      if (this.#turns.get(name) === turn) this.#turns.delete(name);
    }
  }

  async #upTo(
    team: TeamSnapshot,
    name: string,
    lookedUp: LookedUp,
    range: TimeRange | null,
  ): Promise<Remembered | null> {
    const costs = this.#readCosts.all(team.teamNo)[0]?.[0] as string;
    const version = `${team.marks.generation} ${costs}`;
    const known = this.#values.get(name);
    const isNew = known?.version !== version;
    const remembered = isNew ? { version, lastSeq: team.firstSeq - 1, traces: [] } : known;
    const left = limits.rememberedTracesMax - remembered.traces.length;
    const seqs = await this.#seqsAfter(remembered.lastSeq, team, lookedUp, left);
    if (!seqs) {
      this.#values.forget(name);
      return null;
    }
    if (isNew && !this.#isWorthIt(team, seqs.length, range)) return null;
    // If a read fails, nothing is remembered of the others.
    const found: Remembered['traces'] = [];
    for (let at = 0; at < seqs.length; at += limits.lookupRowsMax) {
      if (at > 0) await nextTurn();
      const chunk = seqs.slice(at, at + limits.lookupRowsMax);
      for (const one of this.#read(team, lookedUp, chunk)) found.push(one);
    }
    for (const one of found) remembered.traces.push(one);
    remembered.lastSeq = Math.max(remembered.lastSeq, team.lastSeq);
    this.#values.keep(name, remembered);
    return remembered;
  }

  /** Null if there are more than `countMax`. */
  async #seqsAfter(
    seq: number,
    team: TeamSnapshot,
    { field, value }: LookedUp,
    countMax: number,
  ): Promise<number[] | null> {
    const after = { ...team, firstSeq: seq + 1 };
    const all: number[] = [];
    if (after.firstSeq > team.lastSeq) return all;
    const found = lookUpAll([value], team.lastSeq + 1, async (_, beforeSeq) =>
      this.#lookUp(after, field, value, beforeSeq),
    );
    for await (const seqs of found) {
      // The oldest block has older ones, too.
      for (const own of seqs) if (own > seq) all.push(own);
      if (all.length > countMax) return null;
      if ((seqs.at(-1) ?? 0) <= seq) break;
    }
    return all;
  }

  /** Not if there are few traces, or if the range has few. */
  #isWorthIt({ teamNo }: TeamSnapshot, count: number, range: TimeRange | null): boolean {
    if (count < limits.lookupRowsMax) return false;
    return range === null || !isShort(this.#db, teamNo, range, count / 2);
  }

  *#read({ teamNo }: TeamSnapshot, { field, value }: LookedUp, seqs: readonly number[]) {
    const { columns, traceOf } = matchingRows(groupFields);
    const rows = prepareArrays(
      this.#db,
      // Other values may have the same hash.
      `select ${columns}, ${seqOfRowId} from traces
       where key in (select (? << 40) | value from json_each(?)) and ${field} = ?`,
    ).all(teamNo, JSON.stringify(seqs), value);
    for (const row of rows) yield { seq: row.at(-1) as number, trace: traceOf(shared(row)) };
  }
}

/** Another question may have read newer ones in the meantime. */
function* matchingOf(
  { traces }: Remembered,
  { lastSeq }: TeamSnapshot,
  { filter, range }: TallyQuery,
): Generator<CountedTrace> {
  const matches = matcherOf(filter);
  for (const { seq, trace } of traces) {
    if (seq <= lastSeq && isInRange(range, eventUs(trace)) && matches(trace)) yield trace;
  }
}

/** Whether a range has at most this many traces, and few enough to read all of them. */
export function isShort(
  db: DatabaseSync,
  teamNo: number,
  { fromUs, toUs }: TimeRange,
  count: number,
): boolean {
  const read = prepareArrays(
    db,
    `select 1 from traces where ${teamOfRowId} = ? and ${eventTime} >= ? and ${eventTime} < ? limit 1 offset ?`,
  );
  const countMax = Math.floor(Math.min(count, limits.lookupInsteadRowsMax));
  return read.all(teamNo, fromUs, toUs, countMax).length === 0;
}

const texts = new Map<string, string>();

/** With the same text for the same label: most are models and features, which repeat. */
function shared(row: RowValues): RowValues {
  return row.map((value) => {
    if (typeof value !== 'string') return value;
    const known = texts.get(value);
    if (known !== undefined) return known;
    if (texts.size >= limits.keptGroupsMax) texts.clear();
    texts.set(value, value);
    return value;
  });
}
