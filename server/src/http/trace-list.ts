import { wholeRange } from '../core/asked-range.ts';
import { calendarOf } from '../core/calendar.ts';
import { formatTimestamp } from '../core/clock.ts';
import { orderedFields } from '../core/dimensions.ts';
import { single } from '../core/question.ts';
import type { SentParameters } from '../core/question.ts';
import { boundedNames } from '../core/trace-fields.ts';
import { fail } from '../errors.ts';
import type { ListRequest, TraceChunks, TraceReader } from '../store/trace-reader.ts';
import { readAsked } from './asked.ts';
import type { Cursors, Place } from './cursors.ts';
import { minimumOf } from './question-parameters.ts';

/** A filtered list of traces, which has cursors instead of pages. */
export interface TraceList extends TraceChunks {
  nextCursor: string | null;
  /** The `created_at` of the oldest trace that was looked at; null if everything was searched. */
  searchedTo: string | null;
}

interface ListQuestion {
  teamId: string;
  sent: SentParameters;
  shown: ListRequest;
  nowUs: number;
  isWanted: () => boolean;
}

const unfiltered = new Set(['page', 'limit', 'omit', 'preview_chars']);

export function isFiltered(sent: SentParameters): boolean {
  return Object.keys(sent).some((name) => !unfiltered.has(name));
}

export async function readTraceList(
  reader: TraceReader,
  cursors: Cursors,
  question: ListQuestion,
): Promise<TraceList> {
  const { teamId, sent } = question;
  if (sent['page'] !== undefined) refuse('page', 'must not be combined with a filter; use cursor');
  const cursor = single(sent, 'cursor');
  const place = cursor === undefined ? null : cursors.open(teamId, sent, cursor);
  if (cursor !== undefined && place === null) {
    refuse('cursor', 'must be the next_cursor of a list with the same filters');
  }
  return sent['order'] === undefined
    ? newestFirst(reader, cursors, question, place)
    : inOrder(reader, cursors, question, place);
}

async function newestFirst(
  reader: TraceReader,
  cursors: Cursors,
  { teamId, sent, shown, nowUs, isWanted }: ListQuestion,
  place: Place | null,
): Promise<TraceList> {
  const { criteria, range } = await readAsked(reader, teamId, sent, nowUs, 'instant');
  const pinned = place?.toUs ? { fromUs: place.fromUs, toUs: place.toUs } : range;
  const request = {
    ...shown,
    criteria: {
      ...criteria,
      range: wholeRange(pinned, calendarOf('UTC')),
      minimums: minimumsOf(sent),
      text: single(sent, 'q') ?? null,
    },
    beforeSeq: place?.seq ?? null,
  };
  const { first, rest, next } = await reader.search(teamId, request, isWanted);
  const bounds = { fromUs: pinned?.fromUs ?? null, toUs: pinned?.toUs ?? null };
  return {
    first,
    rest,
    nextCursor: next && cursors.seal(teamId, sent, { seq: next.seq, us: null, ...bounds }),
    searchedTo: next && formatTimestamp(next.createdAtUs),
  };
}

function minimumsOf(sent: SentParameters) {
  return Object.fromEntries(
    boundedNames.flatMap((name) => {
      const least = single(sent, minimumOf(name));
      return least === undefined ? [] : [[name, Number(least)]];
    }),
  );
}

async function inOrder(
  reader: TraceReader,
  cursors: Cursors,
  { teamId, sent, shown, isWanted }: ListQuestion,
  place: Place | null,
): Promise<TraceList> {
  const field = orderedFields.find((name) => sent[name] !== undefined);
  const value = field === undefined ? undefined : single(sent, field);
  const expected = new Set([...unfiltered, 'order', 'cursor', field]);
  const others = Object.keys(sent).filter((name) => !expected.has(name));
  if (field === undefined || !value || others.length > 0) {
    return refuse('order', `must be combined with one ${orderedFields.join(' or one ')} alone`);
  }
  const after = place?.us ? { us: place.us, seq: place.seq } : null;
  const { first, rest, next } = await reader.ordered(
    teamId,
    { ...shown, field, value, after },
    isWanted,
  );
  const nextPlace = next && { ...next, fromUs: null, toUs: null };
  return {
    first,
    rest,
    nextCursor: nextPlace && cursors.seal(teamId, sent, nextPlace),
    searchedTo: null,
  };
}

function refuse(field: string, message: string): never {
  return fail('invalid_input', { errors: [{ field, message }] });
}
