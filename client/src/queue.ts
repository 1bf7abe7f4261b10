import type { Bytes } from './transport.ts';

/** A queued trace, as the bytes to send. */
export interface Item {
  /** Counts up from 1 in the order of arrival. */
  readonly seq: number;
  readonly bytes: Bytes;
}

export interface QueueBounds {
  readonly maxQueueTraces: number;
  readonly maxQueueBytes: number;
  readonly maxBatchTraces: number;
  readonly maxBatchBytes: number;
}

/** Traces that wait and traces in flight, bounded together because both are in memory. */
export class TraceQueue {
  readonly #bounds: QueueBounds;
  readonly #waiting: Item[] = [];
  #waitingBytes = 0;
  #heldTraces = 0;
  #heldBytes = 0;
  #lastSeq = 0;

  constructor(bounds: QueueBounds) {
    this.#bounds = bounds;
  }

  /** Traces that are not settled yet. */
  get held(): number {
    return this.#heldTraces;
  }

  /** The number of the latest trace; 0 before the first. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** The number of the trace that has waited longest; Infinity if none waits. */
  get headSeq(): number {
    return this.#waiting[0]?.seq ?? Number.POSITIVE_INFINITY;
  }

  get hasFullBatch(): boolean {
    const { maxBatchTraces, maxBatchBytes } = this.#bounds;
    return this.#waiting.length >= maxBatchTraces || this.#waitingBytes >= maxBatchBytes;
  }

  get isHalfEmpty(): boolean {
    const { maxQueueTraces, maxQueueBytes } = this.#bounds;
    return this.#heldTraces * 2 <= maxQueueTraces && this.#heldBytes * 2 <= maxQueueBytes;
  }

  /** False if the queue is full. */
  offer(bytes: Bytes): boolean {
    const { maxQueueTraces, maxQueueBytes } = this.#bounds;
    if (this.#heldTraces + 1 > maxQueueTraces) return false;
    if (this.#heldBytes + bytes.length > maxQueueBytes) return false;
    this.#waiting.push({ seq: ++this.#lastSeq, bytes });
    this.#waitingBytes += bytes.length;
    this.#heldTraces += 1;
    this.#heldBytes += bytes.length;
    return true;
  }

  /** The oldest traces, as many as fit into a batch; a trace that is larger than a batch is taken alone. */
  takeBatch(): Item[] {
    const { maxBatchTraces, maxBatchBytes } = this.#bounds;
    let count = 0;
    let bytes = 0;
    for (const item of this.#waiting) {
      const isOver = count === maxBatchTraces || bytes + item.bytes.length > maxBatchBytes;
      if (count > 0 && isOver) break;
      count += 1;
      bytes += item.bytes.length;
    }
    this.#waitingBytes -= bytes;
    return this.#waiting.splice(0, count);
  }

  takeAll(): Item[] {
    this.#waitingBytes = 0;
    return this.#waiting.splice(0);
  }

  /** Removes traces that are stored or given up from the counts. */
  settle(items: readonly Item[]): void {
    this.#heldTraces -= items.length;
    for (const { bytes } of items) this.#heldBytes -= bytes.length;
  }
}

const opening = new TextEncoder().encode('{"traces":[');
const closing = new TextEncoder().encode(']}');
const comma = 0x2c;

/** The body of a batch. */
export function joinItems(items: readonly Item[]): Bytes {
  const length = items.reduce((sum, { bytes }) => sum + bytes.length + 1, -1);
  const body = new Uint8Array(opening.length + length + closing.length);
  body.set(opening);
  let at = opening.length;
  for (const { bytes } of items) {
    if (at > opening.length) body[at++] = comma;
    body.set(bytes, at);
    at += bytes.length;
  }
  body.set(closing, at);
  return body;
}
