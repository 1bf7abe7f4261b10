import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TraceDraft } from '../../core/trace-fields.ts';
import type { TraceStamp } from '../../core/trace.ts';
import type { PayloadBlob } from '../../store/payload-blob.ts';
import type { DecodedReply, DecodedSignals } from './decode-job.ts';
import { partBytes, readPart } from './decoded-parts.ts';
import type { ReadPart } from './decoded-parts.ts';
import { stampShown } from './shown-traces.ts';

/** A body that a decoding thread has decoded and validated. */
export class DecodedBody {
  readonly #reply: DecodedReply;

  constructor(reply: DecodedReply) {
    this.#reply = reply;
  }

  get bodyHash(): string | null {
    return this.#reply.bodyHash;
  }

  get bytes(): number {
    return this.#reply.parts.reduce((sum, part) => sum + partBytes(part), 0);
  }

  get rows(): number {
    return this.#reply.parts.reduce((sum, part) => sum + part.rows, 0);
  }

  /** The rejected items of a batch as JSON. */
  get rejected(): string {
    return this.#reply.rejected;
  }

  get signals(): DecodedSignals {
    const { signals } = this.#reply;
    if (signals === null) throw new Error('the body has no signals');
    return signals;
  }

  /** All traces. A large body is read in several turns of the event loop. */
  async traces(): Promise<{ drafts: TraceDraft[]; payloads: PayloadBlob[] }> {
    const drafts: TraceDraft[] = [];
    const payloads: PayloadBlob[] = [];
    for (const part of this.#reply.parts) {
      if (drafts.length > 0) await nextTurn();
      drafts.push(...readPart(part).drafts);
      payloads.push(part.payloads);
    }
    return { drafts, payloads };
  }

  /** The JSON of the stored traces for the reply, in pieces that commas separate. */
  shown(stored: readonly TraceStamp[]): Buffer[] {
    let first = 0;
    return this.#reply.parts.map(({ rows, shown }) => {
      if (shown === null) throw new Error('the body has no traces to show');
      const stamps = stored.slice(first, first + rows);
      first += rows;
      return stampShown(shown, stamps);
    });
  }

  /** Each part is read when it is asked for. */
  *parts(): Generator<ReadPart & { payloads: PayloadBlob[] }> {
    for (const part of this.#reply.parts) yield { ...readPart(part), payloads: [part.payloads] };
  }
}
