import { setTimeout as delay } from 'node:timers/promises';
import { calendarOf } from '../../core/calendar.ts';
import type { Calendar } from '../../core/calendar.ts';
import { FairQueue } from '../../core/fair-queue.ts';
import { hasMetadataFilter, matchesMetadata } from '../../core/query.ts';
import type { Tally, TallyQuery } from '../../core/query.ts';
import { planQuery } from '../../core/query-plan.ts';
import { TallySheet } from '../../core/tally-sheet.ts';
import { Failure } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { defaultTimeZone } from '../team-marks.ts';
import type { TallyList, TraceReader } from '../trace-reader.ts';
import { countedFromRow } from '../trace-rows.ts';
import { WideReads } from '../wide-reads.ts';
import { ask, run } from './connection.ts';
import type { Pools } from './connection.ts';
import { marksFromRow } from './marks-rows.ts';
import { asFailure, isCancelled } from './postgres-failures.ts';
import { countedColumns, ofMarks, tailOf } from './rollup-statements.ts';
import { LongSnapshot, inSnapshot } from './snapshot.ts';
import {
  TailParts,
  TailTooLong,
  addRollup,
  metadataOfRow,
  tallyFromGroupRow,
} from './tally-rows.ts';
import {
  answerOf,
  answerParts,
  groupsOf,
  labelsOf,
  rollupsOf,
  tracesOf,
} from './tally-statements.ts';
import type { QueryStatement, RollupPlan } from './tally-statements.ts';

/** An answer, or null if it is too large for a short read. It is right only if the team's time zone is still the same. */
interface Answer<T> {
  timeZone: string;
  value: T | null;
}

interface Question {
  teamId: string;
  query: TallyQuery;
  calendar: Calendar;
  rowsMax: number | null;
  /** False once the caller no longer waits. */
  isWanted: () => boolean;
}

/** Answers questions about sums. Short ones take one or two round trips; the others read through cursors, few of them at once. */
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
  /** A long tail takes tens of megabytes while it is added up and sent, so a team's lists add it up one after another. */
  const longTails = new FairQueue(
    {
      runningMax: limits.postgresLongTailsMax,
      teamRunningMax: 1,
      teamWaitingMax: limits.postgresWideReadersMax + limits.postgresEvaluationsMax,
    },
    () => new Failure('reads_busy'),
  );
  /** The time zone that each team had last. Every answer is checked against the snapshot that it comes from. */
  const timeZones = new Map<string, string>();

  /** Lists that were too long for a short read, so that it is not tried again each time. */
  const longLists = new Set<string>();

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

  /** In one round trip. */
  async function askBriefly(
    question: Question,
    plan: RollupPlan,
    rollupsMax: number,
  ): Promise<Answer<Tally[]>> {
    const { teamId, query, calendar } = question;
    const most = { rollupsMax, tailMax: limits.tailRowsMax };
    const { text, values, isPrepared } = answerOf(teamId, query, plan, most);
    const rows = await turns.run(teamId, () => ask(reading, text, values, undefined, isPrepared));
    const sheet = new TallySheet(query, calendar);
    const counts = { tail: 0, rollups: 0 };
    let found = defaultTimeZone;
    for (const row of rows) {
      if (row['part'] === answerParts.tail) {
        counts.tail += 1;
        sheet.addTrace(countedFromRow(row));
      } else if (row['part'] === answerParts.rollup) {
        counts.rollups += 1;
        addRollup(sheet, query, row);
      } else {
        found = row['time_zone'] as string;
      }
    }
    const isShort = counts.tail <= limits.tailRowsMax && counts.rollups <= rollupsMax;
    return { timeZone: found, value: isShort ? sheet.tallies() : null };
  }

  /** The first groups by one field, ordered by the database: in two round trips, since the tail is added up before. */
  async function listBriefly(question: Question, plan: RollupPlan): Promise<Answer<Tally[]>> {
    const { teamId, rowsMax } = question;
    const read = () =>
      inSnapshot(reading, async (client, begun) => {
        const { text, values, isPrepared } = shortTail(question, plan);
        const [, marks, tail] = await Promise.all([
          begun,
          run(client, ofMarks.readMarks, [teamId]),
          run(client, text, values, limits.postgresAnswerMsMax, isPrepared),
        ]);
        const { timeZone: found } = marksFromRow(marks.rows[0]);
        if (tail.rows.length > limits.tailRowsMax) return { timeZone: found, value: null };
        const parts = tailParts(question);
        for (const row of tail.rows) parts.add(countedFromRow(row));
        const groups = groupsOf(teamId, question.query, plan, parts.take(), rowsMax);
        const { rows } = await run(
          client,
          groups.text,
          groups.values,
          limits.postgresAnswerMsMax,
          groups.isPrepared,
        );
        return { timeZone: found, value: rows.map(tallyFromGroupRow) };
      });
    return turns.run(teamId, async () => {
      try {
        return await read();
      } catch (error) {
        // A list that takes longer is read at length.
        if (isCancelled(error)) return { timeZone: question.calendar.timeZone, value: null };
        throw asFailure(error);
      }
    });
  }

  /** The same from the beginning, with cursors. */
  async function askAtLength(
    question: Question,
    plan: RollupPlan | null,
  ): Promise<Answer<Tally[]>> {
    const { teamId, query, calendar } = question;
    return inLongSnapshot(teamId, async (snapshot) => {
      const { timeZone: found } = marksFromRow(
        (await snapshot.ask(ofMarks.readMarks, [teamId]))[0],
      );
      const sheet = new TallySheet(query, calendar);
      const check = (): void => {
        if (sheet.size > limits.tallyRowsMax) throw new Failure('question_too_wide');
      };
      if (plan) {
        await snapshot.each(rollupsOf(teamId, query, plan), (row) => {
          addRollup(sheet, query, row);
          check();
        });
      }
      const hasMetadata = hasMetadataFilter(query);
      await snapshot.each(plan ? tail(question, plan) : tracesOf(teamId, query), (row) => {
        if (hasMetadata && !matchesMetadata(query, metadataOfRow(row))) return;
        sheet.addTrace(countedFromRow(row));
        check();
      });
      return { timeZone: found, value: sheet.tallies() };
    });
  }

  async function inLongSnapshot<T>(
    teamId: string,
    look: (snapshot: LongSnapshot) => Promise<T>,
  ): Promise<T> {
    return evaluations.run(teamId, async () => {
      let snapshot: LongSnapshot | null = null;
      try {
        snapshot = await LongSnapshot.open(wideReading, limits.evaluationMsMax);
        return await look(snapshot);
      } catch (error) {
        throw asFailure(error);
      } finally {
        snapshot?.close();
      }
    });
  }

  /** The first groups, or all of them in chunks. */
  async function listAtLength(question: Question, plan: RollupPlan): Promise<Answer<TallyList>> {
    const { teamId, query, rowsMax } = question;
    const start = async (snapshot: LongSnapshot) => {
      const { timeZone: found } = marksFromRow(
        (await snapshot.ask(ofMarks.readMarks, [teamId]))[0],
      );
      const next = await longTails.run(teamId, async () => {
        const parts = tailParts(question);
        await snapshot.each(tail(question, plan), (row) => parts.add(countedFromRow(row)));
        const groups = groupsOf(teamId, query, plan, parts.take(), rowsMax);
        return snapshot.cursor(groups, limits.groupChunkRows);
      });
      return { timeZone: found, next };
    };
    if (rowsMax !== null) {
      return inLongSnapshot(teamId, async (snapshot) => {
        const { timeZone: found, next } = await start(snapshot);
        const first: Tally[] = [];
        for (let rows = await next(); rows.length > 0; rows = await next()) {
          first.push(...rows.map(tallyFromGroupRow));
        }
        return { timeZone: found, value: { first, rest: null } };
      });
    }
    let found = question.calendar.timeZone;
    const value = await wideReads.open(teamId, async () => {
      const snapshot = await LongSnapshot.open(wideReading, limits.wideReadMsMax).catch(rethrow);
      try {
        const started = await start(snapshot);
        found = started.timeZone;
        return {
          next: async () => (await started.next().catch(rethrow)).map(tallyFromGroupRow),
          close: () => snapshot.close(),
        };
      } catch (error) {
        snapshot.close();
        throw asFailure(error);
      }
    });
    return { timeZone: found, value };
  }

  /** A very long tail is being rolled up, so the list is read once enough of it is. Nothing is kept open while it waits. */
  async function listWhenRolledUp(question: Question, plan: RollupPlan) {
    const untilMs = performance.now() + limits.postgresTailWaitMsMax;
    for (;;) {
      try {
        const [tails] = await ask(reading, ofMarks.readTails, [question.teamId]);
        const rows = Number(tails?.[plan.set.speed] ?? 0);
        if (rows > limits.postgresTailRowsMax || !question.isWanted()) throw new TailTooLong();
        return await listAtLength(question, plan);
      } catch (error) {
        const isWorthWaiting = question.isWanted() && performance.now() < untilMs;
        if (!(error instanceof TailTooLong) || !isWorthWaiting) throw error;
      }
      await delay(limits.postgresTailRetryMs);
    }
  }

  async function answer(question: Question): Promise<Answer<TallyList>> {
    const plan = planQuery(question.query, question.calendar);
    if (plan.kind === 'traces') return asList(question, await askAtLength(question, null));
    if (!isList(question.query)) {
      const brief = await askBriefly(question, plan, limits.tallyRowsMax);
      return asList(question, brief.value ? brief : await askAtLength(question, plan));
    }
    const name = `${question.teamId} ${question.query.groupBy[0]}`;
    const isLong = longLists.has(name);
    const brief = isLong ? null : await askBriefly(question, plan, listRowsMax);
    if (brief?.value) return asList(question, brief);
    const list = question.rowsMax === null ? null : await listBriefly(question, plan);
    if (list?.value) return asList(question, list);
    const long = await listWhenRolledUp(question, plan);
    if ((long.value?.first.length ?? 0) < limits.groupChunkRows) longLists.delete(name);
    else if (longLists.size < limits.keyCacheEntriesMax) longLists.add(name);
    return long;
  }

  return {
    timeZone,
    ranking: async () => null,
    async tallies(teamId, query, rowsMax = null, isWanted = () => true) {
      for (let attempts = 1; ; attempts++) {
        const zone = timeZones.get(teamId) ?? (await timeZone(teamId));
        const { timeZone: found, value } = await answer({
          teamId,
          query,
          calendar: calendarOf(zone),
          rowsMax,
          isWanted,
        });
        if (found === zone && value) return value;
        // The team's time zone has changed, so the question was planned for other days.
        value?.rest?.close();
        remember(teamId, found);
        if (attempts === attemptsMax)
          throw new Failure('store_unavailable', { cause: 'the time zone keeps changing' });
      }
    },
  };
}

const attemptsMax = 3;

/** A list with more rollups is grouped by the database. Each group may have calls and errors. */
const listRowsMax = 2 * limits.groupChunkRows;

/** A list by one field may have very many groups, so the database groups and orders it. */
function isList({ groupBy, interval }: TallyQuery): boolean {
  return groupBy.length === 1 && groupBy[0] !== 'status' && interval === null;
}

function asList({ rowsMax }: Question, { timeZone, value }: Answer<Tally[]>): Answer<TallyList> {
  if (!value) return { timeZone, value };
  const first = rowsMax === null ? value : value.slice(0, rowsMax);
  return { timeZone, value: { first, rest: null } };
}

function tail({ teamId, query }: Question, { set }: RollupPlan): QueryStatement {
  const text = tailOf(set.speed, countedColumns(labelsOf(query)));
  return { text, values: [teamId], isPrepared: true };
}

function shortTail(question: Question, plan: RollupPlan): QueryStatement {
  const statement = tail(question, plan);
  return { ...statement, text: `${statement.text} limit ${limits.tailRowsMax + 1}` };
}

/** Adds up the tail of a list: errors apart, as in the rollups. */
function tailParts({ query, calendar }: Question): TailParts {
  const withErrors: TallyQuery = { ...query, groupBy: [...query.groupBy, 'status'] };
  return new TailParts(() => new TallySheet(withErrors, calendar));
}

function rethrow(error: unknown): never {
  throw asFailure(error);
}
