import type { AskedRange } from '../core/asked-range.ts';
import type { Calendar } from '../core/calendar.ts';
import { isWideField } from '../core/dimensions.ts';
import type { GroupField } from '../core/dimensions.ts';
import { noMeasures } from '../core/measures.ts';
import type { Interval, Tally, TallyQuery, TraceCriteria } from '../core/query.ts';
import { missingPartners, single } from '../core/question.ts';
import type { SentParameters } from '../core/question.ts';
import { isPercentile } from '../core/record-fields.ts';
import type { RecordName } from '../core/record-fields.ts';
import { Ranking, fillWithZeros, reportOn, reportWithRest, startsIn } from '../core/report.ts';
import type { RankOrder, Report } from '../core/report.ts';
import { areStartsOf } from '../core/tally-sheet.ts';
import { fail } from '../errors.ts';
import { limits } from '../limits.ts';
import type { TraceReader } from '../store/trace-reader.ts';
import { askedIn, calendarOfTeam } from './asked.ts';

type Reader = Pick<TraceReader, 'tallies' | 'ranking' | 'timeZone'>;

/** A question of `/analytics/query` about one team. */
interface ReportQuestion {
  teamId: string;
  criteria: TraceCriteria;
  groupBy: readonly GroupField[];
  interval: Interval | null;
  order: RankOrder;
  groupsMax: number;
  isWanted: () => boolean;
}

export interface Answered {
  report: Report;
  groupBy: readonly GroupField[];
  range: AskedRange | null;
  calendar: Calendar;
}

/** Answers a question whose parameters have the right form. */
export async function askReport(
  reader: Reader,
  teamId: string,
  sent: SentParameters,
  nowUs: number,
  isWanted: () => boolean = () => true,
): Promise<Answered> {
  const errors = missingPartners(sent, { order: 'group_by', limit: 'group_by', fill: 'interval' });
  if (errors.length > 0) fail('invalid_input', { errors });
  return inTimeZone(reader, teamId, async (calendar) => {
    const { criteria, range } = askedIn(calendar, sent, nowUs, 'hour');
    const question = { teamId, criteria, isWanted, ...shapeOf(sent) };
    const { groupBy, interval } = question;
    const report = await readReport(reader, question);
    const tallies = [...report.rows, ...report.other];
    if (interval !== null && !areStartsOf(interval, calendar, tallies)) return null;
    const isFilled = sent['fill'] !== undefined && interval !== null;
    const whole = isFilled ? filled(report, groupBy, interval, range, calendar, nowUs) : report;
    if (whole.rows.length + whole.other.length > limits.reportRowsMax) refuseRows();
    return { report: whole, groupBy, range, calendar };
  });
}

/** Asks again if the time zone of the team has changed meanwhile: `ask` returns null. */
export async function inTimeZone<T>(
  reader: Pick<TraceReader, 'timeZone'>,
  teamId: string,
  ask: (calendar: Calendar) => Promise<T | null>,
): Promise<T> {
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    const answer = await ask(await calendarOfTeam(reader, teamId));
    if (answer !== null) return answer;
  }
  throw new Error('the intervals do not fit the time zone');
}

const attemptsMax = 3;

function shapeOf(sent: SentParameters) {
  const order = single(sent, 'order') ?? '-total_cost_usd';
  const isDescending = order.startsWith('-');
  return {
    groupBy: (single(sent, 'group_by')?.split(',') ?? []) as GroupField[],
    interval: (single(sent, 'interval') ?? null) as Interval | null,
    order: { by: order.slice(isDescending ? 1 : 0) as RecordName, isDescending },
    groupsMax: Number(single(sent, 'limit') ?? limits.groupRowsDefault),
  };
}

async function readReport(reader: Reader, question: ReportQuestion): Promise<Report> {
  const { criteria, groupBy, interval, order, groupsMax } = question;
  const query: TallyQuery = { ...criteria, groupBy, interval };
  const ranked = await rankAtOnce(reader, question, query);
  if (ranked) return ranked;
  const gather = async (more: Partial<TallyQuery>): Promise<Tally[]> => {
    const tallies: Tally[] = [];
    for await (const chunk of ask(reader, question, { ...query, ...more })) tallies.push(...chunk);
    return tallies;
  };
  const [field, ...others] = groupBy;
  // The intervals of very many groups would not fit into memory, so it is found out first which groups are wanted.
  const isLongSeries = interval !== null && field !== undefined && others.length === 0;
  if (!isLongSeries || !isWideField(field)) {
    return withTotals(reportOn(query, await gather({}), order, groupsMax), query);
  }
  const listed = { ...query, interval: null, sumsOnly: !isPercentile(order.by) };
  const { groups } =
    (await rankAtOnce(reader, question, listed)) ?? (await rank(reader, question, listed));
  const only = { [field]: groups.map(([value = null]) => value) };
  const tallies = await gather({ filter: { ...query.filter, ...only } });
  // Read last, so that it includes every trace that the tallies include.
  const together = await gather({ groupBy: [] });
  return reportWithRest(tallies, together, order);
}

/** Null if the store cannot rank it at once. */
async function rankAtOnce(
  reader: Reader,
  { teamId, order, groupsMax, isWanted }: ReportQuestion,
  query: TallyQuery,
): Promise<Report | null> {
  const report = await reader.ranking(teamId, query, order, groupsMax, isWanted);
  return report && withTotals(report, query);
}

/** A list that may be long is ranked while it is read. */
async function rank(reader: Reader, question: ReportQuestion, query: TallyQuery): Promise<Report> {
  const { order, groupsMax } = question;
  const ranking = new Ranking(order, groupsMax);
  for await (const chunk of ask(reader, question, query)) {
    for (const tally of chunk) ranking.add(tally);
  }
  return withTotals(ranking.report(), query);
}

/** Without groups and intervals there is one row, even if there are no calls. */
function withTotals(report: Report, { groupBy, interval }: TallyQuery): Report {
  if (groupBy.length > 0 || interval !== null || report.rows.length > 0) return report;
  return { ...report, rows: [{ group: [], startUs: null, measures: noMeasures() }] };
}

async function* ask(
  reader: Reader,
  { teamId, isWanted }: ReportQuestion,
  query: TallyQuery,
): AsyncGenerator<readonly Tally[]> {
  const { first, rest } = await reader.tallies(teamId, query, null, isWanted);
  try {
    yield first;
    if (rest) yield* rest;
  } finally {
    rest?.close();
  }
}

/** Over all time, the rows are those from the first interval with calls to the current one. */
function filled(
  report: Report,
  groupBy: readonly GroupField[],
  interval: Interval,
  asked: AskedRange | null,
  calendar: Calendar,
  nowUs: number,
): Report {
  const groups = groupBy.length === 0 ? [[]] : report.groups;
  const times = [...report.rows, ...report.other].map(({ startUs }) => startUs ?? nowUs);
  const range = {
    fromUs: asked?.fromUs ?? Math.min(nowUs, ...times),
    toUs: asked?.toUs ?? Math.max(nowUs, ...times) + 1,
  };
  const linesMax = Math.max(1, groups.length + Math.min(1, report.other.length));
  const startsMax = Math.floor(limits.reportRowsMax / linesMax);
  const starts = startsIn(interval, range, calendar, startsMax) ?? refuseRows();
  return fillWithZeros({ ...report, groups }, starts);
}

function refuseRows(): never {
  return fail('question_too_wide', {
    say: `The answer would have more than ${limits.reportRowsMax.toLocaleString('en-US')} rows. Choose a shorter time range, a longer interval, or a smaller limit.`,
  });
}
