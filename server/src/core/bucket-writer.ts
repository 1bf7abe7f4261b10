import { VarintWriter } from './varint.ts';

/** Writes a latency histogram as it is stored: each bucket as the distance to the one before it, then its count. */
export class BucketWriter {
  readonly #writer: VarintWriter;
  #last = 0;

  /** With about as many bytes as will be written. */
  constructor(bytes?: number) {
    this.#writer = new VarintWriter(bytes);
  }

  /** Buckets come in order. */
  write(bucket: number, count: number): void {
    this.#writer.writeNumber(bucket - this.#last);
    this.#writer.writeNumber(count);
    this.#last = bucket;
  }

  bytes(): Uint8Array {
    return this.#writer.bytes();
  }
}
