/** The thread for slow reads. It has its own connection, so it cannot block the short reads of the main thread or show them old data. */
import { parentPort, workerData } from 'node:worker_threads';
import { isWideField } from '../../core/dimensions.ts';
import type { Tally, TallyQuery } from '../../core/query.ts';
import { reportOn } from '../../core/report.ts';
import type { Report } from '../../core/report.ts';
import type { TallySheet } from '../../core/tally-sheet.ts';
import { messageOf } from '../../errors.ts';
import { everyTrace, inOrderOfCalls, searchTraces } from '../trace-search.ts';
import type { FoundPlaces, FoundSeqs } from '../trace-search.ts';
import { evaluate } from './evaluation.ts';
import type {
  FromReading,
  RankQuestion,
  ReadingData,
  ReadingQuestion,
  SearchQuestion,
  ToReading,
} from './reading-messages.ts';
import { openReadingBoth } from './rollup-file.ts';
import { prepareSearches } from './search-driver.ts';
import { failureOf } from './sqlite-failures.ts';
import { Sums } from './sums.ts';
import type { SumsPlan } from './sums.ts';
import { openTallyList, tallyListOf } from './tally-list.ts';
import type { ReadableList } from './tally-list.ts';

if (!parentPort) throw new Error('this file runs as a worker thread');
const port = parentPort;
const db = openReadingBoth((workerData as ReadingData).path);
const sums = new Sums(db);
const driverOf = prepareSearches(db);

/** Lists that are being read. Null while one is being gathered. */
const lists = new Map<number, ReadableList | null>();

port.on('message', ({ ticket, question }: ToReading) => {
  replyTo(ticket, question).then(reply, (error: unknown) =>
    reply({ kind: 'failed', ticket, code: failureOf(error).code, reason: messageOf(error) }),
  );
});

async function replyTo(ticket: number, question: ToReading['question']): Promise<FromReading> {
  switch (question.kind) {
    case 'search':
    case 'ordered':
      return { kind: 'found', ticket, found: await find(question) };
    case 'rank':
      return { kind: 'ranked', ticket, report: await rank(question) };
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

async function answer(question: ReadingQuestion): Promise<readonly Tally[]> {
  switch (question.kind) {
    case 'gather':
      return gather(question.teamId, question.query, question.rowsMax);
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
  const opened = await begin(teamId, query, ({ question }) =>
    openTallyList(db, sums, question, `list_${list}`),
  );
  const own = opened instanceof Array ? tallyListOf(opened) : opened;
  // It may have been closed in the meantime.
  if (lists.has(list)) lists.set(list, own);
  else own.close();
}

function nextOf(list: number): readonly Tally[] {
  const open = lists.get(list);
  if (!open) throw new Error(`there is no list ${list}`);
  return open.next();
}

async function gather(teamId: string, query: TallyQuery, rowsMax: number | null) {
  const tallies = await begin(teamId, query, ({ question }) => sums.list(question, rowsMax));
  return rowsMax === null ? tallies : tallies.slice(0, rowsMax);
}

type SumsOf = Extract<SumsPlan, { kind: 'sums' }>;

/** Answers from sums in one transaction, or reads the traces in many. */
async function begin<T>(
  teamId: string,
  query: TallyQuery,
  bySums: (plan: SumsOf) => T,
): Promise<T | Tally[]> {
  const begun = sums.read(teamId, query, (plan) =>
    plan.kind === 'sums' ? { kind: 'answered' as const, answer: bySums(plan) } : plan,
  );
  if (begun === null) return [];
  if (begun.kind === 'answered') return begun.answer;
  const sheet: TallySheet = await evaluate(db, begun.team, query, begun.calendar);
  return sheet.tallies();
}

/** Null if a series of very many groups has to be read from the traces: the first groups are found in a question of their own. */
async function rank({ teamId, query, order, groupsMax }: RankQuestion): Promise<Report | null> {
  const isLongSeries = query.interval !== null && query.groupBy.some(isWideField);
  const isByTraces = sums.read(teamId, query, ({ kind }) => kind === 'traces');
  if (isLongSeries && isByTraces === true) return null;
  const ranked = await begin(teamId, query, ({ question }) =>
    sums.rank(question, order, groupsMax),
  );
  return ranked instanceof Array ? reportOn(query, ranked, order, groupsMax) : ranked;
}

function reply(message: FromReading): void {
  port.postMessage(message);
}
