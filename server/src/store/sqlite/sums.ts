import type { DatabaseSync } from 'node:sqlite';
import { calendarOf } from '../../core/calendar.ts';
import type { Calendar } from '../../core/calendar.ts';
import { planQuery, splitAtDays } from '../../core/query-plan.ts';
import type { Tally, TallyQuery, TraceFilter } from '../../core/query.ts';
import { isPercentile } from '../../core/record-fields.ts';
import type { RankOrder, Report } from '../../core/report.ts';
import { Failure } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { SumsSql, filterSql } from '../../query/sums-sql.ts';
import type { SumsQuestion } from '../../query/sums-sql.ts';
import { SumList, reportOfSums, talliesOf } from '../../query/sums.ts';
import type { Sum, SumRow } from '../../query/sums.ts';
import { prepareArrays } from './array-statement.ts';
import { StatementCache } from './statement-cache.ts';
import { SqliteSums } from './sums-dialect.ts';
import { TeamSnapshots, noGeneration } from './team-snapshot.ts';
import type { TeamSnapshot } from './team-snapshot.ts';

/** A question that rollups can answer. */
export interface PlannedSums extends SumsQuestion {
  team: TeamSnapshot;
  calendar: Calendar;
  /** The groups that match the filter; null if they are all, or too many. */
  groupNos: readonly number[] | null;
}

/** Where the traces of a question are: in rollups, or only in the traces themselves. */
export type SumsPlan =
  | { kind: 'sums'; question: PlannedSums }
  | { kind: 'traces'; team: TeamSnapshot; calendar: Calendar };

/** Answers questions on one connection: SQL adds up rollups, the traces after the mark, and changes. */
export class Sums {
  readonly snapshots: TeamSnapshots;
  readonly #statements: StatementCache;
  readonly #sumStatements: StatementCache;

  constructor(db: DatabaseSync) {
    this.snapshots = new TeamSnapshots(db);
    this.#statements = new StatementCache((sql) => prepareArrays(db, sql));
    // Sums may exceed 2^53.
    this.#sumStatements = new StatementCache((sql) => prepareArrays(db, sql, true));
  }

  /** Runs `read` in a transaction with the plan of a question. Null if there is no such team. */
  read<T>(teamId: string, query: TallyQuery, read: (plan: SumsPlan) => T): T | null {
    return this.snapshots.read(teamId, (team) => read(this.plan(team, query)));
  }

  timeZone(teamId: string): string {
    const zone = this.snapshots.read(teamId, ({ marks }) => marks.timeZone);
    if (zone === null) throw new Error(`there is no team ${teamId}`);
    return zone;
  }

  /** In the transaction of the snapshot. */
  plan(team: TeamSnapshot, query: TallyQuery): SumsPlan {
    const calendar = calendarOf(team.marks.timeZone);
    const tailRows = team.lastSeq - team.marks.seq;
    const plan = planQuery(query, calendar);
    const split = plan.kind === 'traces' ? splitAtDays(query, calendar) : null;
    const found = plan.kind === 'rollups' ? plan : split?.plan;
    if (!found || tailRows > limits.tailRowsMax) return { kind: 'traces', team, calendar };
    const isRolled = team.marks.generation !== noGeneration;
    const { set } = found;
    const tiles = isRolled ? found.tiles : [];
    const covered = split ? split.days.range : query.range;
    const edges = split ? split.edges.flatMap(({ range }) => range ?? []) : [];
    const question = { team, calendar, query, set, tiles, covered, edges, groupNos: null };
    return { kind: 'sums', question: this.#narrowed(question, limits.fewGroupsMax) };
  }

  /** If few groups match the filter, only their rollups are read. */
  #narrowed(question: PlannedSums, groupsMax: number): PlannedSums {
    const { team, set, query } = question;
    const isNarrow = Object.keys(query.filter).some((field) => field !== 'status');
    if (!isNarrow || question.tiles.length === 0) return { ...question, groupNos: null };
    const sql = new SqliteSums(team, null);
    const ofSet = `g.team_no = ${sql.bind(team.teamNo)} and g.set_no = ${sql.bind(set.number)}`;
    const text = `select g.no from rollup_groups g where ${ofSet}${filterSql(sql, query.filter, 'g.')} limit ${sql.bind(groupsMax + 1)}`;
    const found = this.#statements.get(text).all(...sql.values);
    const groupNos = found.length > groupsMax ? null : found.map(([no]) => no as number);
    return { ...question, groupNos };
  }

  /** Whether an answer takes so little time that it may hold up other requests. */
  isShort({ team, edges, tiles, set, groupNos }: PlannedSums): boolean {
    const tailRows = team.lastSeq - team.marks.seq;
    const changes = team.lastChangeNo - team.changeNo;
    if (tailRows + changes > limits.shortTailRowsMax || edges.length > 0) return false;
    if (groupNos !== null) return groupNos.length <= limits.fewGroupsMax;
    let left = limits.shortRollupsMax;
    const count = this.#statements.get(
      `select count(*) from (select 1 from rollups where team_no = ? and generation = ? and set_no = ? and grain = ?
         and bucket >= ? and bucket < ? limit ?)`,
    );
    for (const { grain, fromBucket, toBucket } of tiles) {
      const key = [team.teamNo, team.marks.generation, set.number, grain, fromBucket, toBucket];
      left -= (count.all(...key, left + 1)[0]?.[0] ?? 0) as number;
      if (left < 0) return false;
    }
    return true;
  }

  /** Every sum, or the first `rowsMax`, by calls descending, then by group, then by time. */
  list(question: PlannedSums, rowsMax: number | null = null): Tally[] {
    const { query } = question;
    // With intervals each minute with traces that are not rolled up has rows of its own.
    const most = query.interval === null ? (rowsMax ?? tooMany) : tooMany + limits.tailRowsMax;
    const list = this.#ask(question, (sql, dialect) => `${sql.list()} limit ${dialect.bind(most)}`);
    const sums = list.all();
    if (rowsMax === null && sums.length >= tooMany) throw new Failure('question_too_wide');
    if (query.sumsOnly !== true) this.#addLatencies(question, list);
    const tallies = talliesOf(sums, query);
    return rowsMax === null ? tallies : tallies.slice(0, rowsMax);
  }

  /** The rows of a table that a statement of sums has filled. */
  rowsOf(question: PlannedSums, text: string, ...values: number[]): Tally[] {
    const list = new SumList(question.query, question.calendar);
    const rows = this.#sumStatements.get(text).all(...values) as unknown as SumRow[];
    for (const row of rows) list.add(row);
    return talliesOf(list.all(), question.query);
  }

  /** The statement of a list, which fills a table. */
  listSql({ team, groupNos, ...question }: PlannedSums): {
    text: string;
    values: SqliteSums['values'];
  } {
    const dialect = new SqliteSums(team, groupNos);
    const text = new SumsSql(dialect, question).list();
    return { text, values: dialect.values };
  }

  /** The first groups, the sums of the others, and the totals. */
  rank(question: PlannedSums, order: RankOrder, groupsMax: number): Report {
    const { query } = question;
    const isRanked = !isPercentile(order.by);
    const list = this.#ask(question, (sql) =>
      isRanked ? sql.ranked(order, groupsMax) : sql.list(),
    );
    const sums = list.all();
    if (query.sumsOnly !== true || !isRanked) {
      this.#addLatencies(isRanked ? this.#listed(question, sums) : question, list);
    }
    const together = this.#together(question, sums);
    return reportOfSums(sums, together, query, order, groupsMax, isRanked);
  }

  /** Only the listed groups, whose histograms are needed. */
  #listed(question: PlannedSums, sums: readonly Sum[]): PlannedSums {
    const { query } = question;
    const only = query.groupBy.map((field, i) => [
      field,
      [...new Set(sums.map(({ group }) => group[i] ?? null))],
    ]);
    const filter = { ...query.filter, ...(Object.fromEntries(only) as TraceFilter) };
    return this.#narrowed({ ...question, query: { ...query, filter } }, limits.listedGroupsMax);
  }

  /** The sums of all groups together, by interval. They come from the smallest set that can answer it. */
  #together({ query, team }: PlannedSums, sums: readonly Sum[]): readonly Sum[] {
    if (query.groupBy.length === 0) return sums;
    const plan = this.plan(team, { ...query, groupBy: [] });
    if (plan.kind === 'traces') throw new Error('all groups together need the traces');
    const list = this.#ask(plan.question, (sql) => sql.sums());
    if (query.sumsOnly !== true) this.#addLatencies(plan.question, list);
    return list.all();
  }

  #ask(question: PlannedSums, textOf: (sql: SumsSql, dialect: SqliteSums) => string): SumList {
    const dialect = new SqliteSums(question.team, question.groupNos);
    const text = textOf(new SumsSql(dialect, question), dialect);
    const list = new SumList(question.query, question.calendar);
    const rows = this.#sumStatements.get(text).all(...dialect.values) as unknown as SumRow[];
    for (const row of rows) list.add(row);
    return list;
  }

  /** Adds the stored histograms, and the bins of traces that are in none, to the sums of a list. */
  #addLatencies(question: PlannedSums, list: SumList): void {
    const at = 2 + question.query.groupBy.length;
    for (const row of this.#rows(question, (sql) => sql.histograms())) {
      list.countsOf(row)?.addEncoded(row[at] as Uint8Array);
    }
    for (const row of this.#rows(question, (sql) => sql.freshBins())) {
      list.countsOf(row)?.add(row[at] as number, row[at + 1] as number);
    }
  }

  #rows(question: PlannedSums, textOf: (sql: SumsSql) => string | null): Iterable<SumRow> {
    const dialect = new SqliteSums(question.team, question.groupNos);
    const text = textOf(new SumsSql(dialect, question));
    if (text === null) return [];
    return this.#statements.get(text).iterate(...dialect.values) as Iterable<SumRow>;
  }
}

/** More than may be in memory. */
const tooMany = limits.tallyRowsMax + 1;
