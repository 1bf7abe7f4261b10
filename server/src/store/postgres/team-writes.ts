import type { RollupDelta } from '../../core/rollup.ts';
import { answerRepeated } from '../idempotency.ts';
import type { EarlierRequest } from '../idempotency.ts';
import type { PackedPayloads } from '../payload.ts';
import type { TeamCounter } from '../sequencer.ts';
import { TeamBatch } from '../team-batch.ts';
import type { ClockJump, IdempotentRequest, TraceWrite, WriteOutcome } from '../trace-writer.ts';
import { TraceColumns } from './trace-columns.ts';

/** A write with the packed payloads of each draft. */
export interface PackedWrite {
  write: TraceWrite;
  payloads: readonly PackedPayloads[];
}

/** What one transaction of one team writes, computed in memory. */
export class TeamWrites {
  readonly outcomes: WriteOutcome[] = [];
  readonly traces = new TraceColumns();
  /** Idempotent requests to be stored with their traces. */
  readonly requests: { request: IdempotentRequest; firstSeq: number; count: number }[] = [];
  readonly #batch: TeamBatch;
  readonly #earlier: Map<string, EarlierRequest>;
  readonly #wallUs: number;

  constructor(
    teamId: string,
    counter: TeamCounter,
    earlier: Map<string, EarlierRequest>,
    wallUs: number,
  ) {
    this.#batch = new TeamBatch(teamId, counter, (...row) => this.traces.add(...row));
    this.#earlier = earlier;
    this.#wallUs = wallUs;
  }

  get counter(): Readonly<TeamCounter> {
    return this.#batch.counter;
  }

  get jump(): ClockJump | null {
    return this.#batch.jump;
  }

  deltas(): RollupDelta[][] {
    return this.#batch.deltas();
  }

  add({ write, payloads }: PackedWrite): void {
    const { request, drafts } = write;
    const earlier = request && this.#earlier.get(request.keyHash);
    if (request && earlier) {
      this.outcomes.push(answerRepeated(request, earlier));
      return;
    }
    const range = { firstSeq: this.counter.lastSeq + 1, count: drafts.length };
    const packed = (index: number) => payloads[index] as PackedPayloads;
    const stamps = this.#batch.append(write, (_draft, index) => packed(index), this.#wallUs);
    this.outcomes.push({ kind: 'stored', stamps });
    if (!request) return;
    this.requests.push({ request, ...range });
    // The same request may be repeated in the same batch.
    const { keyHash, bodyHash, rejected } = request;
    this.#earlier.set(keyHash, { bodyHash, ...range, rejected });
  }
}
