import type { Bytes } from './transport.ts';

/** A trace that waits, as the bytes that will be sent. */
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

/** What waits and what is under way, bounded together: both are held in memory. */
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

  /** The number of the latest arrival; 0 before the first. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** The number of the one that waits longest; Infinity where none waits. */
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

  /** False where there is no room for it. */
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

  /** The longest waiting ones, as many as a batch may hold; one that is larger than a batch goes alone. */
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

  /** They are stored or given up, and leave the memory. */
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
