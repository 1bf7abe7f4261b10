/** The thread for slow reads. It has its own connection, so it cannot block the short reads of the main thread or show them old data. */
import { parentPort, workerData } from 'node:worker_threads';
import { isWideField } from '../../core/dimensions.ts';
import type { Tally, TallyQuery } from '../../core/query.ts';
import { reportOn } from '../../core/report.ts';
import type { Report } from '../../core/report.ts';
import type { TallySheet } from '../../core/tally-sheet.ts';
import { Failure, messageOf } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { everyTrace, inOrderOfCalls, searchTraces } from '../trace-search.ts';
import type { FoundPlaces, FoundSeqs } from '../trace-search.ts';
import { openReading } from './connection.ts';
import { beginEvaluation, evaluate } from './evaluation.ts';
import { listQuestion, openGroupList, prepareGroupLists, topGroups } from './group-list.ts';
import type { GroupList } from './group-list.ts';
import { packTally } from './packed-tally.ts';
import type { PackedTally } from './packed-tally.ts';
import { rankGroups } from './ranked-groups.ts';
import { isSeries, rankSeries } from './ranked-series.ts';
import type {
  FromReading,
  PackedReport,
  RankQuestion,
  ReadingData,
  ReadingQuestion,
  SearchQuestion,
  ToReading,
} from './reading-messages.ts';
import { RememberedTraces } from './remembered-traces.ts';
import { prepareSearches } from './search-driver.ts';
import { failureOf } from './sqlite-failures.ts';
import { TallyReader } from './tally-reader.ts';

if (!parentPort) throw new Error('this file runs as a worker thread');
const port = parentPort;
const db = openReading((workerData as ReadingData).path);
prepareGroupLists(db);
const reader = new TallyReader(db);
const memory = new RememberedTraces(db);
const driverOf = prepareSearches(db);

/** Lists that are being read. Null while one is being gathered. */
const lists = new Map<number, GroupList | null>();
let tables = 0;
const preparationMs = 5;

/** Questions that wait for their answer. */
let waiting = 0;
let preparation: Generator<undefined, void> | null = null;
let isPlanned = false;

port.on('message', ({ ticket, question }: ToReading) => {
  waiting += 1;
  replyTo(ticket, question)
    .then(reply, (error: unknown) =>
      reply({ kind: 'failed', ticket, code: failureOf(error).code, reason: messageOf(error) }),
    )
    .finally(() => {
      waiting -= 1;
      planPreparation();
    });
});

function planPreparation(): void {
  if (isPlanned) return;
  isPlanned = true;
  setImmediate(prepare);
}

/** Goes on until it is done or the next question comes, which waits for no more than a moment. */
function prepare(): void {
  isPlanned = false;
  if (waiting > 0) return;
  preparation ??= reader.prepare();
  const endMs = performance.now() + preparationMs;
  try {
    let isDone = false;
    while (!isDone && performance.now() < endMs) isDone = preparation.next().done === true;
    if (isDone) preparation = null;
    else planPreparation();
  } catch {
    // A question that needs what cannot be read says so.
    preparation = null;
  }
}

async function replyTo(ticket: number, question: ToReading['question']): Promise<FromReading> {
  switch (question.kind) {
    case 'search':
    case 'ordered':
      return { kind: 'found', ticket, found: await find(question) };
    case 'rank': {
      const report = await rank(question);
      return { kind: 'ranked', ticket, report: report && packReport(report) };
    }
    case 'gather':
    case 'open':
    case 'next':
    case 'close':
      return { kind: 'tallies', ticket, tallies: await answer(question) };
  }
}

async function find(question: SearchQuestion): Promise<FoundSeqs | FoundPlaces> {
  const criteria = question.kind === 'search' ? question.criteria : everyTrace;
  const driver = driverOf(question.teamId, criteria);
  if (!driver) return { seqs: [], next: null };
  return question.kind === 'search'
    ? searchTraces(driver, criteria, question.bounds)
    : inOrderOfCalls(driver, question.search);
}

function reply(message: FromReading): void {
  port.postMessage(message);
}

async function answer(question: ReadingQuestion): Promise<readonly (Tally | PackedTally)[]> {
  switch (question.kind) {
    case 'gather': {
      const { teamId, query, rowsMax } = question;
      const list = await gather(teamId, query, rowsMax);
      try {
        return allOf(list);
      } finally {
        list.close();
      }
    }
    case 'open':
      await open(question);
      return [];
    case 'next':
      return nextOf(question.list);
    case 'close':
      lists.get(question.list)?.close();
      lists.delete(question.list);
      return [];
  }
}

async function open({ list, teamId, query }: Extract<ReadingQuestion, { kind: 'open' }>) {
  lists.set(list, null);
  const gathered = await gather(teamId, query, null);
  // It may have been closed in the meantime.
  if (lists.has(list)) lists.set(list, gathered);
  else gathered.close();
}

function nextOf(list: number): (Tally | PackedTally)[] {
  const open = lists.get(list);
  if (!open) throw new Error(`there is no list ${list}`);
  return open.next();
}

function allOf(list: GroupList): (Tally | PackedTally)[] {
  const all: (Tally | PackedTally)[] = [];
  for (let chunk = list.next(); chunk.length > 0; chunk = list.next()) all.push(...chunk);
  return all;
}

/** A long list of names is gathered in a temporary table, everything else in memory. */
async function gather(
  teamId: string,
  query: TallyQuery,
  rowsMax: number | null,
): Promise<GroupList> {
  const begun = reader.withPlan(teamId, query, (team, plan, calendar) => {
    const question = listQuestion(query, plan);
    if (question) {
      // Most lists are short, even over a long time. They need no sorting by SQLite.
      const isCut = rowsMax !== null && query.sumsOnly === true;
      const namesMax = isCut ? limits.tallyRowsMax : limits.groupChunkRows;
      const short = reader.sum(team, question.plan, query, calendar, namesMax);
      if (short) return listOf(short.tallies(), rowsMax);
      return rowsMax === null
        ? openGroupList(db, reader, team, question, calendar, `groups_${++tables}`)
        : listOf(topGroups(db, reader, team, question, calendar, rowsMax), rowsMax);
    }
    if (plan.kind === 'traces') return beginEvaluation(reader, team, query, calendar);
    return listOf(talliesOf(reader.sum(team, plan, query, calendar, limits.tallyRowsMax)), rowsMax);
  });
  if (begun === null) return listOf([], null);
  if (!('team' in begun)) return begun;
  const sheet = await evaluate(db, begun, memory);
  return listOf(sheet.tallies(), rowsMax);
}

function talliesOf(sheet: TallySheet | null): Tally[] {
  if (!sheet) throw new Failure('question_too_wide');
  return sheet.tallies();
}

/** Null if there are too many names, or if a series has to be read from the traces. */
async function rank({ teamId, query, order, groupsMax }: RankQuestion): Promise<Report | null> {
  const begun = reader.withPlan(teamId, query, (team, plan, calendar) => {
    if (plan.kind === 'traces')
      return isSeries(query) && query.groupBy.some(isWideField)
        ? { report: null }
        : beginEvaluation(reader, team, query, calendar);
    if (isSeries(query))
      return { report: rankSeries(reader, team, query, calendar, order, groupsMax) };
    const question = listQuestion(query, plan);
    if (question) return { report: rankGroups(reader, team, question, calendar, order, groupsMax) };
    const sheet = reader.sum(team, plan, query, calendar, limits.tallyRowsMax);
    return { report: reportOn(query, talliesOf(sheet), order, groupsMax) };
  });
  if (begun === null) return reportOn(query, [], order, groupsMax);
  if ('report' in begun) return begun.report;
  const sheet = await evaluate(db, begun, memory);
  const tallies = query.interval === null ? sheet.unsorted() : sheet.tallies();
  return reportOn(query, tallies, order, groupsMax);
}

function packReport({ rows, other, totals, groups }: Report): PackedReport {
  return {
    rows: rows.map(packTally),
    other: other.map(packTally),
    totals: packTally({ group: [], startUs: null, measures: totals }),
    groups,
  };
}

function listOf(tallies: readonly (Tally | PackedTally)[], rowsMax: number | null): GroupList {
  const end = Math.min(tallies.length, rowsMax ?? Infinity);
  let at = 0;
  return {
    next: () => tallies.slice(at, Math.min((at += limits.groupChunkRows), end)),
    close() {},
  };
}
