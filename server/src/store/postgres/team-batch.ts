import { nextCreatedAt } from '../../core/clock.ts';
import { RollupBatch } from '../../core/rollup.ts';
import type { RollupDelta } from '../../core/rollup.ts';
import type { TraceStamp } from '../../core/trace.ts';
import { uuidV7 } from '../../core/uuid.ts';
import type { PackedPayloads } from '../payload.ts';
import type { ClockJump, Once, Replay, TraceWrite, WriteOutcome } from '../store.ts';
import { arrayOfPlain, arrayOfText } from './array-literal.ts';
import type { Values } from './connection.ts';
import { TraceColumns } from './trace-columns.ts';

/** A write with its payloads packed, one for each draft. */
export interface PackedWrite {
  write: TraceWrite;
  payloads: readonly PackedPayloads[];
}

/** Where a team's sequence and time stand. */
export interface Counter {
  lastSeq: number;
  lastUs: number;
}

/** A request that is known by its key. */
export interface KnownRequest extends Replay {
  bodyHash: string;
}

/** What one transaction of one team has to write, worked out in memory. */
export class TeamBatch {
  readonly outcomes: WriteOutcome[] = [];
  readonly traces = new TraceColumns();
  readonly noted: { once: Once; firstSeq: number; count: number }[] = [];
  jump: ClockJump | null = null;

  readonly #teamId: string;
  readonly #counter: Counter;
  readonly #known: Map<string, KnownRequest>;
  readonly #wallUs: number;
  readonly #sums = [new RollupBatch()];

  constructor(teamId: string, counter: Counter, known: Map<string, KnownRequest>, wallUs: number) {
    this.#teamId = teamId;
    this.#counter = { ...counter };
    this.#known = known;
    this.#wallUs = wallUs;
  }

  get counter(): Readonly<Counter> {
    return this.#counter;
  }

  add({ write, payloads }: PackedWrite): void {
    const { once, drafts } = write;
    const earlier = once && this.#known.get(once.keyHash);
    if (once && earlier) {
      this.outcomes.push(answerAgain(once, earlier));
      return;
    }
    const place = { firstSeq: this.#counter.lastSeq + 1, count: drafts.length };
    this.outcomes.push({ kind: 'stored', stamps: this.#addTraces(write, payloads) });
    if (!once) return;
    this.noted.push({ once, ...place });
    // The same request may come again in the same batch.
    this.#known.set(once.keyHash, { bodyHash: once.bodyHash, ...place, rejected: once.rejected });
  }

  /** The parameters of `addRollups` after the team; nearly always once, since a batch is smaller than what can be added up at once. */
  sums(): Values[] {
    return this.#sums.map((sums) => rollupColumns(sums.deltas()));
  }

  #addTraces({ drafts, timesUs }: TraceWrite, payloads: readonly PackedPayloads[]): TraceStamp[] {
    const counter = this.#counter;
    return drafts.map((draft, i) => {
      const createdAtUs = this.#nextTime(timesUs?.[i]);
      const stamp = { id: uuidV7(createdAtUs), createdAtUs };
      counter.lastUs = createdAtUs;
      counter.lastSeq += 1;
      this.traces.add(counter.lastSeq, stamp, draft, payloads[i] ?? noPayloads);
      this.#roomySums().add(draft, createdAtUs);
      return stamp;
    });
  }

  #nextTime(givenUs: number | undefined): number {
    const { lastUs } = this.#counter;
    // A time that is given is no clock: it may lie before live traces, and still never runs backwards.
    if (givenUs !== undefined) return Math.max(givenUs, lastUs + 1);
    const createdAtUs = nextCreatedAt(this.#wallUs, lastUs);
    if (createdAtUs <= lastUs) {
      this.jump = { teamId: this.#teamId, aheadUs: lastUs - this.#wallUs };
    }
    return createdAtUs;
  }

  #roomySums(): RollupBatch {
    const last = this.#sums.at(-1);
    if (last && !last.isFull) return last;
    const next = new RollupBatch();
    this.#sums.push(next);
    return next;
  }
}

const noPayloads: PackedPayloads = { zstdMask: 0, errorMessage: null, input: null, output: null };

function answerAgain({ bodyHash }: Once, earlier: KnownRequest): WriteOutcome {
  if (earlier.bodyHash !== bodyHash) {
    return { kind: 'refused', code: 'idempotency_key_reused', reason: 'another body' };
  }
  const { firstSeq, count, rejected } = earlier;
  return { kind: 'replayed', firstSeq, count, rejected };
}

export function rollupColumns(deltas: readonly RollupDelta[]): Values {
  return [
    arrayOfPlain(deltas.map(({ dimension }) => dimension)),
    arrayOfPlain(deltas.map(({ day }) => day)),
    arrayOfText(deltas.map(({ key }) => key)),
    arrayOfPlain(deltas.map(({ calls }) => calls)),
    arrayOfPlain(deltas.map(({ errors }) => errors)),
    arrayOfPlain(deltas.map(({ latencySum }) => latencySum)),
    arrayOfPlain(deltas.map(({ latencyCount }) => latencyCount)),
    arrayOfPlain(deltas.map(({ promptTokens }) => promptTokens)),
    arrayOfPlain(deltas.map(({ completionTokens }) => completionTokens)),
    arrayOfPlain(deltas.map(({ costMicros }) => costMicros)),
    arrayOfPlain(deltas.map(({ costPicos }) => costPicos)),
  ];
}
