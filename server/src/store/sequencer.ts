import { nextCreatedAt } from '../core/clock.ts';
import { uuidBytes, uuidText, uuidV7Bytes } from '../core/uuid.ts';
import type { TraceStamp } from '../core/trace.ts';
import type { ClockJump } from './trace-writer.ts';

/** A team's last sequence number and time. For a team without traces `lastSeq` is less than `firstSeq`. */
export interface TeamCounter {
  firstSeq: number;
  lastSeq: number;
  lastUs: number;
}

export const emptyCounter: Readonly<TeamCounter> = { firstSeq: 1, lastSeq: 0, lastUs: 0 };

export interface Assigned extends TraceStamp {
  seq: number;
  idBytes: Uint8Array;
}

/** Assigns sequence number, time and id to the traces of one team. Times never go backwards, unless the clock has jumped. */
export class Sequencer {
  readonly teamId: string;
  readonly #counter: TeamCounter;
  /** The last clock jump that was detected. */
  jump: ClockJump | null = null;

  constructor(teamId: string, counter: Readonly<TeamCounter>) {
    this.teamId = teamId;
    this.#counter = { ...counter };
  }

  get counter(): Readonly<TeamCounter> {
    return this.#counter;
  }

  next(wallUs: number, givenUs: number | undefined): Assigned {
    const counter = this.#counter;
    const createdAtUs = this.#timeAfter(counter.lastUs, wallUs, givenUs);
    counter.lastUs = createdAtUs;
    counter.lastSeq += 1;
    const idBytes = uuidV7Bytes(createdAtUs);
    return { seq: counter.lastSeq, id: uuidText(idBytes), idBytes, createdAtUs };
  }

  /** Takes over a sequence number and time that another store has assigned. */
  adopt({ seq, id, createdAtUs }: Omit<Assigned, 'idBytes'>): Assigned {
    const counter = this.#counter;
    if (counter.lastSeq < counter.firstSeq) counter.firstSeq = seq;
    counter.lastSeq = seq;
    counter.lastUs = createdAtUs;
    return { seq, id, idBytes: uuidBytes(id), createdAtUs };
  }

  #timeAfter(lastUs: number, wallUs: number, givenUs: number | undefined): number {
    // Caller-supplied times skip the clock check.
    if (givenUs !== undefined) return Math.max(givenUs, lastUs + 1);
    const createdAtUs = nextCreatedAt(wallUs, lastUs);
    if (createdAtUs <= lastUs) this.jump = { teamId: this.teamId, aheadUs: lastUs - wallUs };
    return createdAtUs;
  }
}
