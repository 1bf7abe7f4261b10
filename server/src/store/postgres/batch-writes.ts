import { setUuidTime, uuidBytes, uuidText, uuidV7Bytes } from '../../core/uuid.ts';
import { countOnce, marksToFind } from '../count-once.ts';
import type { CountedWrite, Mark } from '../count-once.ts';
import { answerRepeated } from '../idempotency.ts';
import type { EarlierRequest } from '../idempotency.ts';
import type { PackedPayloads } from '../payload.ts';
import type { ClockJump, IdempotentRequest, TraceWrite, WriteOutcome } from '../trace-writer.ts';
import { arrayOfPlain, arrayOfText } from './array-literal.ts';
import { placeInCall } from './function-inserts.ts';
import type { WrittenTeam } from './roller-messages.ts';
import { RequestRecords, TraceRecords } from './trace-records.ts';
import type { RecordTypes } from './trace-records.ts';

/** A write with the packed payloads of each draft. */
export interface PackedWrite {
  write: TraceWrite;
  payloads: readonly PackedPayloads[];
}

/** What the function returns. */
export interface StoreAnswer {
  /** For each write its first sequence number, or 0 if it was not stored. */
  firstSeqs: readonly number[];
  /** For each write the time of its first trace in microseconds, unless that was given. */
  firstTimes: readonly number[];
  /** By the number of a write: the earlier request with the same key. */
  requests: Readonly<Record<string, EarlierRequest>> | null;
  /** By team: the states of its calls that are known, if they were not as expected. */
  otherCalls: Readonly<Record<string, Readonly<Record<string, string>>>> | null;
  /** By team: how far its last trace was ahead of the clock. */
  jumps: Readonly<Record<string, number>> | null;
}

/** What became of a write in one call. */
export type CallOutcome =
  | WriteOutcome
  /** Another transaction has locked the team. Nothing is stored. */
  | { kind: 'locked' }
  /** Other reports of its calls were stored in the meantime, or its team was moved to another node. Nothing is stored. */
  | { kind: 'send again' };

/** By team, the known calls by their marks. */
export type KnownCalls = Map<string, ReadonlyMap<string, string>>;

type Calls = NonNullable<TraceWrite['calls']>;

/** A write as the function sees it: one of a caller, or several of a team that need nothing but numbers. */
interface SentWrite extends Pick<CountedWrite, 'duplicates'> {
  write: TraceWrite;
  ids: Buffer[];
  /** The given times, strictly ascending. */
  timesUs: readonly number[] | null;
}

/** How the outcome of each write is found: by the number of a sent one, or of the one whose request it repeats. */
type Source =
  | { sent: number; fromIndex: number; toIndex: number }
  | { repeats: number; request: IdempotentRequest };

/** The writes of one call. The database assigns sequence numbers and times; ids are completed with these times. */
export class BatchWrites {
  /** In ascending order, since the database locks them in this order. */
  readonly teamIds: readonly string[];
  readonly #writesOfTeam: number[] = [];
  readonly #sent: SentWrite[] = [];
  readonly #sources: Source[] = [];
  readonly #rows: TraceRecords;
  readonly #requests: RequestRecords;
  /** By team: the ids that are looked up, and the states that they are expected to have. */
  readonly #callIds: Record<string, { ids: string[]; states: Record<string, string> }> = {};

  constructor(writes: readonly PackedWrite[], known: KnownCalls, types: RecordTypes) {
    this.#rows = new TraceRecords(types);
    this.#requests = new RequestRecords(types);
    const byTeam = Map.groupBy(writes.entries(), ([, { write }]) => write.teamId);
    this.teamIds = [...byTeam.keys()].sort();
    for (const teamId of this.teamIds) {
      const before = this.#sent.length;
      this.#addTeam(teamId, byTeam.get(teamId) ?? [], known.get(teamId) ?? new Map());
      this.#writesOfTeam.push(this.#sent.length - before);
    }
  }

  #addTeam(
    teamId: string,
    writes: readonly [number, PackedWrite][],
    known: ReadonlyMap<string, string>,
  ): void {
    const team = uuidBytes(teamId);
    const calls = new TeamCalls(known);
    const keys = new Map<string, number>();
    let mergedNo: number | null = null;
    for (const [at, { write, payloads }] of writes) {
      const { request } = write;
      const repeated = request ? keys.get(request.keyHash) : undefined;
      if (request && repeated !== undefined) {
        this.#sources[at] = { repeats: repeated, request };
        continue;
      }
      const counted = write.calls
        ? calls.count(write, write.calls)
        : { write, duplicates: [], marks: [] };
      const isPlain = !request && !write.calls && !write.timesUs;
      const writeNo: number = isPlain && mergedNo !== null ? mergedNo : this.#addWrite(counted);
      mergedNo = isPlain ? writeNo : null;
      this.#sources[at] = this.#addRows(team, writeNo, counted, payloads);
      for (const mark of counted.marks) calls.changed.set(mark[0], { mark, writeNo });
      if (!request || write.calls) continue;
      keys.set(request.keyHash, writeNo);
      this.#requests.add(team, request, writeNo, write.drafts.length);
    }
    for (const { mark, writeNo } of calls.changed.values()) {
      const [keyHash, bodyHash] = mark;
      this.#requests.add(team, { keyHash, bodyHash, rejected: null }, writeNo, 0);
    }
    if (calls.ids.size > 0) this.#callIds[teamId] = calls.expected();
  }

  /** Returns its number. */
  #addWrite({ write, duplicates }: CountedWrite): number {
    const timesUs = write.timesUs ? ascending(write.timesUs) : null;
    return this.#sent.push({ write, ids: [], timesUs, duplicates });
  }

  #addRows(
    team: Buffer,
    writeNo: number,
    { write, duplicates }: CountedWrite,
    payloads: readonly PackedPayloads[],
  ): Source {
    const { ids, timesUs } = this.#sent[writeNo - 1] as SentWrite;
    const isLeftOut = new Set(duplicates);
    const left = isLeftOut.size > 0 ? payloads.filter((_, i) => !isLeftOut.has(i)) : payloads;
    const fromIndex = ids.length;
    for (const [i, draft] of write.drafts.entries()) {
      const idBytes = uuidV7Bytes(0);
      const seq = placeInCall(writeNo, ids.length);
      const place = { seq, idBytes, createdAtUs: timesUs?.[i] ?? 0 };
      this.#rows.add(team, place, draft, left[i] as PackedPayloads);
      ids.push(idBytes);
    }
    return { sent: writeNo, fromIndex, toIndex: ids.length };
  }

  /** The parameters of the function from the teams on. */
  values(): readonly unknown[] {
    const sent = this.#sent;
    const keys = sent.map(({ write }) => (write.calls ? null : (write.request?.keyHash ?? null)));
    const times = sent.map(({ timesUs }) => timesUs?.at(-1) ?? 0);
    return [
      arrayOfPlain(this.teamIds),
      arrayOfPlain(this.#writesOfTeam),
      arrayOfPlain(sent.map(({ ids }) => ids.length)),
      times.some((us) => us > 0) ? arrayOfPlain(times) : '{}',
      keys.some((key) => key !== null) ? arrayOfText(keys) : '{}',
      Object.keys(this.#callIds).length > 0 ? JSON.stringify(this.#callIds) : null,
      this.#requests.toBuffer(),
      ...this.#rows.toBuffers(),
    ];
  }

  /** The outcome of each write, in their order. */
  outcomes(answer: StoreAnswer): CallOutcome[] {
    return this.#sources.map((source) => {
      if ('sent' in source) return this.#outcomeOf(source, answer);
      const { repeats, request } = source;
      const earlier = this.#requestOf(repeats, answer);
      const none = { sent: repeats, fromIndex: 0, toIndex: 0 };
      return earlier ? answerRepeated(request, earlier) : this.#outcomeOf(none, answer);
    });
  }

  #outcomeOf(
    { sent: writeNo, fromIndex, toIndex }: Extract<Source, { sent: number }>,
    answer: StoreAnswer,
  ): CallOutcome {
    const at = writeNo - 1;
    const { write, ids, timesUs, duplicates } = this.#sent[at] as SentWrite;
    const earlier = answer.requests?.[writeNo];
    if (earlier && write.request) return answerRepeated(write.request, earlier);
    if (answer.firstSeqs[at] === 0) {
      return { kind: answer.otherCalls?.[write.teamId] ? 'send again' : 'locked' };
    }
    const firstUs = answer.firstTimes[at] ?? 0;
    const stamps = ids.slice(fromIndex, toIndex).map((idBytes, n) => {
      const i = fromIndex + n;
      const createdAtUs = Math.max(timesUs?.[i] ?? 0, firstUs + i);
      setUuidTime(idBytes, createdAtUs);
      return { id: uuidText(idBytes), createdAtUs };
    });
    return write.calls ? { kind: 'stored', stamps, duplicates } : { kind: 'stored', stamps };
  }

  /** The request of a sent write as it is stored now; null if it is not. */
  #requestOf(writeNo: number, { requests, firstSeqs }: StoreAnswer): EarlierRequest | null {
    const { write, ids } = this.#sent[writeNo - 1] as SentWrite;
    const firstSeq = firstSeqs[writeNo - 1] ?? 0;
    if (firstSeq === 0 || !write.request) return requests?.[writeNo] ?? null;
    const { bodyHash, rejected } = write.request;
    return { bodyHash, rejected, firstSeq, count: ids.length };
  }

  /** The teams that have new traces. */
  written({ firstSeqs }: StoreAnswer): WrittenTeam[] {
    const teams: WrittenTeam[] = [];
    for (const [at, { write, ids }] of this.#sent.entries()) {
      const firstSeq = firstSeqs[at] ?? 0;
      if (firstSeq === 0 || ids.length === 0) continue;
      const lastSeq = firstSeq + ids.length - 1;
      const before = teams.at(-1);
      if (before?.teamId === write.teamId) before.lastSeq = lastSeq;
      else teams.push({ teamId: write.teamId, fromSeq: firstSeq - 1, lastSeq });
    }
    return teams;
  }
}

export function jumpsOf({ jumps }: StoreAnswer): ClockJump[] {
  return Object.entries(jumps ?? {}).map(([teamId, aheadUs]) => ({ teamId, aheadUs }));
}

/** The calls that the writes of one team report. */
class TeamCalls {
  readonly #known: ReadonlyMap<string, string>;
  readonly ids = new Set<string>();
  /** By mark, with the last write that changes it. */
  readonly changed = new Map<string, { mark: Mark; writeNo: number }>();

  constructor(known: ReadonlyMap<string, string>) {
    this.#known = known;
  }

  count(write: TraceWrite, calls: Calls): CountedWrite {
    for (const mark of marksToFind(calls)) this.ids.add(mark);
    const added = new Map<string, string>();
    return countOnce(write, calls, {
      get: (mark) => added.get(mark) ?? this.changed.get(mark)?.mark[1] ?? this.#known.get(mark),
      set: (mark, state) => void added.set(mark, state),
    });
  }

  expected() {
    const ids = [...this.ids];
    const states = ids.flatMap((id) => {
      const state = this.#known.get(id);
      return state === undefined ? [] : [[id, state] as const];
    });
    return { ids, states: Object.fromEntries(states) };
  }
}

/** So that the times only need to be moved if the team has later ones. */
function ascending(timesUs: readonly number[]): number[] {
  let last = 0;
  return timesUs.map((us) => (last = Math.max(us, last + 1)));
}
