import { setImmediate as nextTurn } from 'node:timers/promises';
import { hasMetadataFilter } from '../core/query.ts';
import type { SearchCriteria, TimeRange } from '../core/query.ts';
import { Failure } from '../errors.ts';
import { limits } from '../limits.ts';
import { lookUpAll, lookupQuestion } from './trace-lookups.ts';
import type { LookupField } from './trace-lookups.ts';
import type { EventPlace } from './trace-reader.ts';

/** What a search needs from a driver: reads about one team, each a short one. "Matching" is about the narrow columns of a trace. */
export interface SearchDriver {
  /** The sequence numbers that exist; the last one is before the first if there are none. */
  bounds(): Promise<{ firstSeq: number; lastSeq: number }>;
  /** As in `TraceLookups`. */
  lookUp(field: LookupField, value: string, beforeSeq: number): Promise<readonly number[]>;
  /** The traces of a time range in any order, at most `rowsMax`. */
  inRange(range: TimeRange, rowsMax: number): Promise<readonly number[]>;
  /** How many traces of a time range are worth finding through it. In a longer range `between` finds them sooner. */
  readonly rangeRows: number;
  /** How many consecutive traces `between` may read at once. */
  readonly windowRows: number;
  /** The matching traces from `fromSeq` down to `toSeq`, newest first. */
  between(fromSeq: number, toSeq: number): Promise<readonly number[]>;
  /** Those of the traces that match, newest first. */
  among(seqs: readonly number[]): Promise<readonly number[]>;
  /** Those of the traces whose payloads match, in the same order. */
  withPayloads(seqs: readonly number[]): Promise<readonly number[]>;
  createdAtUs(seq: number): Promise<number>;
  /** When the calls happened, in any order. */
  timesOf(seqs: readonly number[]): Promise<readonly EventPlace[]>;
}

export interface SearchBounds {
  /** Only traces before this one; null for all. */
  beforeSeq: number | null;
  rowsMax: number;
  msMax: number;
}

export interface FoundSeqs {
  /** Newest first. */
  seqs: readonly number[];
  /** The oldest trace that was looked at, if there may be more before it. */
  next: { seq: number; createdAtUs: number } | null;
}

/** Matching traces, newest first, and how far they are complete. */
interface Candidates {
  seqs: readonly number[];
  toSeq: number;
}

/** Searches for a bounded time. Traces never change, so the next search can continue where this one ended. */
export async function searchTraces(
  driver: SearchDriver,
  criteria: SearchCriteria,
  { beforeSeq, rowsMax, msMax }: SearchBounds,
): Promise<FoundSeqs> {
  const untilMs = performance.now() + msMax;
  const { firstSeq, lastSeq } = await driver.bounds();
  const fromSeq = Math.min(lastSeq, (beforeSeq ?? Infinity) - 1);
  const found: number[] = [];
  const end = async (seq: number): Promise<FoundSeqs> => ({
    seqs: found,
    next: { seq, createdAtUs: await driver.createdAtUs(seq) },
  });
  for await (const { seqs, toSeq } of checked(driver, criteria, fromSeq, firstSeq)) {
    for (const seq of seqs) {
      // There is at least one more.
      if (found.length === rowsMax) return end(found.at(-1) ?? seq);
      found.push(seq);
    }
    if (toSeq <= firstSeq) break;
    if (performance.now() > untilMs) return end(toSeq);
    // Other reads take their turn.
    await nextTurn();
  }
  return { seqs: found, next: null };
}

/** With payloads, fewer traces are checked at once, since each may have megabytes. */
async function* checked(
  driver: SearchDriver,
  criteria: SearchCriteria,
  fromSeq: number,
  firstSeq: number,
): AsyncGenerator<Candidates> {
  const needsPayloads = criteria.text !== null || hasMetadataFilter(criteria);
  for await (const candidates of candidatesOf(driver, criteria, fromSeq, firstSeq)) {
    const { seqs, toSeq } = candidates;
    if (!needsPayloads || seqs.length === 0) {
      yield candidates;
      continue;
    }
    for (let at = 0; at < seqs.length; at += limits.searchPayloadRows) {
      const some = seqs.slice(at, at + limits.searchPayloadRows);
      const isLast = at + limits.searchPayloadRows >= seqs.length;
      yield {
        seqs: await driver.withPayloads(some),
        toSeq: isLast ? toSeq : (some.at(-1) ?? toSeq),
      };
    }
  }
}

/** Through lookups or the times of the calls if that leaves few traces to read, otherwise all of them. */
async function* candidatesOf(
  driver: SearchDriver,
  { filter, range }: SearchCriteria,
  fromSeq: number,
  firstSeq: number,
): AsyncGenerator<Candidates> {
  if (fromSeq < firstSeq) return;
  const lookup = lookupQuestion(filter);
  if (lookup) {
    const { field, values } = lookup;
    const lookUp = (value: string, before: number) => driver.lookUp(field, value, before);
    for await (const seqs of lookUpAll(values, fromSeq + 1, lookUp)) {
      yield { seqs: await driver.among(seqs), toSeq: seqs.at(-1) ?? firstSeq };
    }
    return;
  }
  const inRange = range && (await driver.inRange(range, driver.rangeRows + 1));
  if (inRange && inRange.length <= driver.rangeRows) {
    const sorted = Float64Array.from(inRange.filter((seq) => seq <= fromSeq))
      .sort()
      .reverse();
    for (let at = 0; at < sorted.length; at += limits.evaluationChunkRows) {
      const seqs = [...sorted.subarray(at, at + limits.evaluationChunkRows)];
      yield { seqs: await driver.among(seqs), toSeq: seqs.at(-1) ?? firstSeq };
    }
    return;
  }
  for (let seq = fromSeq; seq >= firstSeq; seq -= driver.windowRows) {
    const toSeq = Math.max(firstSeq, seq - driver.windowRows + 1);
    yield { seqs: await driver.between(seq, toSeq), toSeq };
  }
}

/** The traces of one value in the order of their calls, after a place. Fails with `question_too_wide` if there are very many. */
export async function inOrderOfCalls(
  driver: SearchDriver,
  { field, value, after, rowsMax }: OrderedSearch,
): Promise<FoundPlaces> {
  const { lastSeq } = await driver.bounds();
  const places: EventPlace[] = [];
  const lookUp = (own: string, before: number) => driver.lookUp(field, own, before);
  for await (const seqs of lookUpAll([value], lastSeq + 1, lookUp)) {
    places.push(...(await driver.timesOf(seqs)));
    if (places.length > limits.orderedRowsMax) throw new Failure('question_too_wide');
  }
  const later = places
    .filter((place) => after === null || byTime(place, after) > 0)
    .sort(byTime)
    .slice(0, rowsMax + 1);
  const found = later.slice(0, rowsMax);
  const next = later.length > rowsMax ? (found.at(-1) ?? null) : null;
  return { seqs: found.map(({ seq }) => seq), next };
}

export const everyTrace: SearchCriteria = { filter: {}, range: null, minimums: {}, text: null };

export interface OrderedSearch {
  field: LookupField;
  value: string;
  /** Only later ones; null for all. */
  after: EventPlace | null;
  rowsMax: number;
}

export interface FoundPlaces {
  seqs: readonly number[];
  /** The last one that was found, if there are more after it. */
  next: EventPlace | null;
}

function byTime(a: EventPlace, b: EventPlace): number {
  return a.us - b.us || a.seq - b.seq;
}
