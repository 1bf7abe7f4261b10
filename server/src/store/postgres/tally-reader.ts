import { calendarOf } from '../../core/calendar.ts';
import type { Calendar } from '../../core/calendar.ts';
import { FairQueue } from '../../core/fair-queue.ts';
import { hasMetadataFilter, matchesMetadata } from '../../core/query.ts';
import type { Tally, TallyQuery } from '../../core/query.ts';
import { isWideField } from '../../core/dimensions.ts';
import { planQuery, splitAtDays } from '../../core/query-plan.ts';
import type { RankOrder, Report } from '../../core/report.ts';
import { TallySheet } from '../../core/tally-sheet.ts';
import { Failure } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { sumNames } from '../../query/sums-sql.ts';
import type { SumsQuestion } from '../../query/sums-sql.ts';
import { SumList, reportOfSums, talliesOf } from '../../query/sums.ts';
import type { SumRow } from '../../query/sums.ts';
import { metadataText } from '../payload.ts';
import type { TallyList, TraceReader } from '../trace-reader.ts';
import { countedFromRow } from '../trace-rows.ts';
import { WideReads } from '../wide-reads.ts';
import { ask } from './connection.ts';
import type { Pools, Row } from './connection.ts';
import { marksFromRow } from './marks-rows.ts';
import { asFailure } from './postgres-failures.ts';
import { ofMarks } from './rollup-statements.ts';
import { LongSnapshot } from './snapshot.ts';
import { listedSums, rankedSums, sumParts, sumsForCursor } from './sums-statements.ts';
import { tracesOf } from './tally-statements.ts';
import type { QueryStatement } from './tally-statements.ts';

/** An answer, and the time zone that the team had in its snapshot. */
interface Answer<T> {
  timeZone: string;
  value: T;
}

interface Question {
  teamId: string;
  query: TallyQuery;
  calendar: Calendar;
  rowsMax: number | null;
}

/** Answers questions about sums: in one round trip if rollups cover them, otherwise by reading traces, few questions at once. */
export function openTallyReader(
  { reading, wideReading }: Pools,
  turns: FairQueue,
): Pick<TraceReader, 'timeZone' | 'tallies' | 'ranking'> {
  const wideReads = new WideReads(limits.postgresWideReadersMax);
  const evaluations = new FairQueue(
    {
      runningMax: limits.postgresEvaluationsMax,
      teamRunningMax: limits.postgresOneTeamEvaluationsMax,
      teamWaitingMax: limits.postgresEvaluationsWaitingMax,
    },
    () => new Failure('reads_busy', { say: 'Too many questions of this team are waiting.' }),
  );
  /** The time zone that each team had last. Every answer is checked against the snapshot that it comes from. */
  const timeZones = new Map<string, string>();

  function remember(teamId: string, timeZone: string): void {
    if (timeZones.size >= limits.keyCacheEntriesMax) timeZones.clear();
    timeZones.set(teamId, timeZone);
  }

  async function timeZone(teamId: string): Promise<string> {
    const [row] = await turns.run(teamId, () => ask(reading, ofMarks.readMarks, [teamId]));
    const { timeZone: found } = marksFromRow(row);
    remember(teamId, found);
    return found;
  }

  /**
   * In one round trip. Questions about very many groups, or while very many traces are not rolled up, have connections of their own, so that
   * short ones need not wait for them.
   */
  async function askSums(
    { teamId, query }: Question,
    statementOf: (tailMax: number) => QueryStatement,
    isWanted?: () => boolean,
  ): Promise<readonly Row[]> {
    if (!query.groupBy.some(isWideField)) {
      const { text, values, isPrepared } = statementOf(limits.tailRowsMax);
      const askOnce = () => ask(reading, text, values, undefined, isPrepared);
      const rows = await turns.run(teamId, askOnce, isWanted);
      if (rows[0]?.['is_behind'] !== true) return rows;
    }
    const { text, values, isPrepared } = statementOf(Number.MAX_SAFE_INTEGER);
    return inLongSnapshot(teamId, (snapshot) => snapshot.ask(text, values, isPrepared), isWanted);
  }

  async function inLongSnapshot<T>(
    teamId: string,
    look: (snapshot: LongSnapshot) => Promise<T>,
    isWanted?: () => boolean,
  ): Promise<T> {
    const work = async (): Promise<T> => {
      let snapshot: LongSnapshot | null = null;
      try {
        snapshot = await LongSnapshot.open(wideReading, limits.evaluationMsMax);
        return await look(snapshot);
      } catch (error) {
        throw asFailure(error);
      } finally {
        snapshot?.close();
      }
    };
    return evaluations.run(teamId, work, isWanted);
  }

  /** The first tallies in one round trip; null if there are more. */
  async function listBriefly(
    question: Question,
    planned: SumsQuestion,
    tooMany: number,
  ): Promise<Answer<Tally[] | null>> {
    const { teamId, query, calendar, rowsMax } = question;
    const isWhole = query.interval === null;
    // With intervals each minute with traces that are not rolled up has rows of its own.
    const most = isWhole ? (rowsMax ?? tooMany) : tooMany + limits.rollHurryRows;
    const rows = await askSums(question, (tailMax) => listedSums(teamId, planned, most, tailMax));
    const list = new SumList(query, calendar);
    for (const row of rows) addRow(list, row, query);
    const sums = list.all();
    const isCut = rows.length >= most || sums.length >= tooMany;
    const isAll = (isWhole && rowsMax !== null) || !isCut;
    return { timeZone: zoneOf(rows), value: isAll ? talliesOf(sums, query) : null };
  }

  /** All groups in chunks. */
  async function listAtLength(
    { teamId, query, calendar }: Question,
    planned: SumsQuestion,
  ): Promise<Answer<TallyList>> {
    let found = calendar.timeZone;
    const value = await wideReads.open(teamId, async () => {
      const snapshot = await LongSnapshot.open(wideReading, limits.wideReadMsMax).catch(rethrow);
      try {
        const [marks] = await snapshot.ask(ofMarks.readMarks, [teamId]);
        found = marksFromRow(marks).timeZone;
        const next = await snapshot.cursor(sumsForCursor(teamId, planned), limits.groupChunkRows);
        return {
          next: async () => {
            const list = new SumList(query, calendar);
            for (const row of await next().catch(rethrow))
              addSums(list, Object.values(row) as SumRow, query);
            return talliesOf(list.all(), query);
          },
          close: () => snapshot.close(),
        };
      } catch (error) {
        snapshot.close();
        throw asFailure(error);
      }
    });
    return { timeZone: found, value };
  }

  /** Reads the traces themselves. */
  async function evaluate({ teamId, query, calendar }: Question): Promise<Answer<Tally[]>> {
    return inLongSnapshot(teamId, async (snapshot) => {
      const [marks] = await snapshot.ask(ofMarks.readMarks, [teamId]);
      const sheet = new TallySheet(query, calendar);
      const hasMetadata = hasMetadataFilter(query);
      await snapshot.each(tracesOf(teamId, query), (row) => {
        if (hasMetadata && !matchesMetadata(query, metadataOfRow(row))) return;
        sheet.addTrace(countedFromRow(row));
        if (sheet.size > limits.tallyRowsMax) throw new Failure('question_too_wide');
      });
      return { timeZone: marksFromRow(marks).timeZone, value: sheet.tallies() };
    });
  }

  async function listOf(question: Question): Promise<Answer<TallyList>> {
    const { query, calendar, rowsMax } = question;
    const planned = plannedSums(query, calendar);
    if (!planned) return asList(question, await evaluate(question));
    const isList = query.groupBy.length === 1 && query.interval === null && rowsMax === null;
    const tooMany = 1 + (isList ? limits.groupChunkRows : limits.tallyRowsMax);
    const { timeZone: found, value } = await listBriefly(question, planned, tooMany);
    if (value) return asList(question, { timeZone: found, value });
    if (!isList) throw new Failure('question_too_wide');
    return listAtLength(question, planned);
  }

  /** Null if the traces have to be read. */
  async function reportOf(
    question: Question,
    order: RankOrder,
    groupsMax: number,
    isWanted?: () => boolean,
  ): Promise<Answer<Report> | null> {
    const { teamId, query, calendar } = question;
    const planned = plannedSums(query, calendar);
    if (!planned) return null;
    const isWhole = query.groupBy.length === 0;
    const whole = isWhole ? null : plannedSums({ ...query, groupBy: [] }, calendar);
    const rows = await askSums(
      question,
      (tailMax) => rankedSums(teamId, planned, whole, order, groupsMax, tailMax),
      isWanted,
    );
    const listed = new SumList(query, calendar);
    const wholeQuery = { ...query, groupBy: [] };
    const together = new SumList(wholeQuery, calendar);
    for (const row of rows) {
      if (row['part'] === sumParts.together) addTogether(together, row, query);
      else addRow(listed, row, query);
    }
    const sums = listed.all();
    const all = isWhole ? sums : together.all();
    return {
      timeZone: zoneOf(rows),
      value: reportOfSums(sums, all, query, order, groupsMax, false),
    };
  }

  /** The team's time zone may have changed, so that the question was planned for other days. */
  async function inTimeZone<T>(
    teamId: string,
    answer: (calendar: Calendar) => Promise<Answer<T> | null>,
    discard: (value: T) => void,
  ): Promise<T | null> {
    for (let attempts = 1; attempts <= attemptsMax; attempts++) {
      const zone = timeZones.get(teamId) ?? (await timeZone(teamId));
      const answered = await answer(calendarOf(zone));
      if (!answered || answered.timeZone === zone) return answered && answered.value;
      discard(answered.value);
      remember(teamId, answered.timeZone);
    }
    throw new Failure('store_unavailable', { cause: 'the time zone keeps changing' });
  }

  return {
    timeZone,
    ranking: (teamId, query, order, groupsMax, isWanted) =>
      inTimeZone(
        teamId,
        (calendar) =>
          reportOf({ teamId, query, calendar, rowsMax: null }, order, groupsMax, isWanted),
        () => {},
      ),
    async tallies(teamId, query, rowsMax = null) {
      const list = await inTimeZone(
        teamId,
        (calendar) => listOf({ teamId, query, calendar, rowsMax }),
        ({ rest }) => rest?.close(),
      );
      return list ?? { first: [], rest: null };
    },
  };
}

const attemptsMax = 3;

/** Null if no rollups can answer it. */
export function plannedSums(query: TallyQuery, calendar: Calendar): SumsQuestion | null {
  const plan = planQuery(query, calendar);
  const split = plan.kind === 'traces' ? splitAtDays(query, calendar) : null;
  const found = plan.kind === 'rollups' ? plan : split?.plan;
  if (!found) return null;
  const { set, tiles } = found;
  const covered = split ? split.days.range : query.range;
  const edges = split ? split.edges.flatMap(({ range }) => range ?? []) : [];
  return { query, set, tiles, covered, edges };
}

function asList({ rowsMax }: Question, { timeZone, value }: Answer<Tally[]>): Answer<TallyList> {
  const first = rowsMax === null ? value : value.slice(0, rowsMax);
  return { timeZone, value: { first, rest: null } };
}

/** A team that does not exist has no row. */
function zoneOf(rows: readonly Row[]): string {
  return (rows[0]?.['time_zone'] as string | undefined) ?? marksFromRow(undefined).timeZone;
}

/** A row of `listedSums` or `rankedSums`. It is empty if there are no sums. */
function addRow(list: SumList, row: Row, query: TallyQuery): void {
  if (row['part'] === null) return;
  const [, , , ...values] = Object.values(row) as SumRow;
  addSums(list, values, query);
}

/** The groups of all groups together are null. */
function addTogether(list: SumList, row: Row, query: TallyQuery): void {
  const [, , , grain = 0, bucket = 0, ...values] = Object.values(row) as SumRow;
  const sums = [grain, bucket, ...values.slice(query.groupBy.length)];
  addSums(list, sums, { ...query, groupBy: [] });
}

function addSums(list: SumList, values: SumRow, { groupBy }: TallyQuery): void {
  list.add(values);
  const [latencies, bins, calls] = values.slice(2 + groupBy.length + sumNames.length) as [
    readonly Uint8Array[] | null | undefined,
    readonly number[] | null | undefined,
    readonly string[] | null | undefined,
  ];
  if (!latencies && !bins) return;
  const counts = list.countsOf(values);
  for (const histogram of latencies ?? []) counts?.addEncoded(histogram);
  for (const [i, bin] of (bins ?? []).entries()) counts?.add(bin, Number(calls?.[i]));
}

/** The metadata of a row of `tracesOf`, as JSON. */
function metadataOfRow(row: Row): string | null {
  return metadataText(row['metadata'] as Buffer | null, row['zstd_mask'] as number | null);
}

function rethrow(error: unknown): never {
  throw asFailure(error);
}
