import type { NarrowTrace, TraceDraft } from '../core/trace-fields.ts';
import type { TraceStamp } from '../core/trace.ts';
import type { PackedPayloads } from './payload.ts';
import { Sequencer } from './sequencer.ts';
import type { Assigned, TeamCounter } from './sequencer.ts';
import type { TraceWrite } from './trace-writer.ts';
import type { PackedTrace } from './transfer.ts';

/** Called with each trace in the form in which it is stored. */
export type AddRow = (assigned: Assigned, trace: NarrowTrace, payloads: PackedPayloads) => void;

/** What one transaction adds to one team. Rows are passed to the driver immediately; the counter is written at the end. */
export class TeamBatch {
  readonly #sequencer: Sequencer;
  readonly #addRow: AddRow;

  constructor(teamId: string, counter: Readonly<TeamCounter>, addRow: AddRow) {
    this.#sequencer = new Sequencer(teamId, counter);
    this.#addRow = addRow;
  }

  get counter(): Readonly<TeamCounter> {
    return this.#sequencer.counter;
  }

  get jump() {
    return this.#sequencer.jump;
  }

  append(
    { drafts, timesUs }: TraceWrite,
    payloadsOf: (draft: TraceDraft, index: number) => PackedPayloads,
    wallUs: number,
  ): TraceStamp[] {
    return drafts.map((draft, i) => {
      const assigned = this.#sequencer.next(wallUs, timesUs?.[i]);
      this.#addRow(assigned, draft, payloadsOf(draft, i));
      return { id: assigned.id, createdAtUs: assigned.createdAtUs };
    });
  }

  take(traces: readonly PackedTrace[]): void {
    for (const trace of traces) {
      this.#addRow(this.#sequencer.adopt(trace), trace, trace);
    }
  }
}
