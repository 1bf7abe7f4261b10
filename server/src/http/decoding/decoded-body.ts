import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TraceDraft } from '../../core/trace-fields.ts';
import type { PayloadBlob } from '../../store/payload-blob.ts';
import type { DecodedReply, DecodedSignals } from './decode-job.ts';
import { partBytes, readPart } from './decoded-parts.ts';
import type { ReadPart } from './decoded-parts.ts';

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

  /** All traces. Those of a large body are read in several turns of the event loop. */
  async traces(): Promise<{ drafts: TraceDraft[]; payloads: PayloadBlob[]; shown: string[] }> {
    const drafts: TraceDraft[] = [];
    const payloads: PayloadBlob[] = [];
    const shown: string[] = [];
    for (const part of this.#reply.parts) {
      if (drafts.length > 0) await nextTurn();
      const read = readPart(part);
      drafts.push(...read.drafts);
      payloads.push(part.payloads);
      shown.push(...(read.shown ?? []));
    }
    return { drafts, payloads, shown };
  }

  /** Each part is read when it is asked for. */
  *parts(): Generator<ReadPart & { payloads: PayloadBlob[] }> {
    for (const part of this.#reply.parts) yield { ...readPart(part), payloads: [part.payloads] };
  }
}
