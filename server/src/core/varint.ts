/** Unsigned integers below 2^53 in as few bytes as needed: seven bits per byte, lowest first, the high bit set if more follow. */
export class VarintWriter {
  #bytes: Uint8Array;
  #length = 0;

  constructor(bytes = usualBytes) {
    this.#bytes = new Uint8Array(bytes);
  }

  /** A value below 2^53. */
  writeNumber(value: number): void {
    let rest = value;
    for (; rest >= 2 ** 31; rest = Math.floor(rest / 0x80)) this.#push((rest % 0x80) | 0x80);
    for (; rest >= 0x80; rest >>>= 7) this.#push((rest & 0x7f) | 0x80);
    this.#push(rest);
  }

  bytes(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }

  #push(byte: number): void {
    if (this.#length === this.#bytes.length) this.#grow();
    this.#bytes[this.#length++] = byte;
  }

  #grow(): void {
    const larger = new Uint8Array(2 * this.#bytes.length);
    larger.set(this.#bytes);
    this.#bytes = larger;
  }
}

/** Enough for most sums. */
const usualBytes = 64;

export class VarintReader {
  readonly #bytes: Uint8Array;
  #at: number;

  constructor(bytes: Uint8Array, at = 0) {
    this.#bytes = bytes;
    this.#at = at;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** A value that is known to stay below 2^53. */
  readNumber(): number {
    let value = 0;
    for (let unit = 1; ; unit *= 0x80) {
      const byte = this.#next();
      value += (byte & 0x7f) * unit;
      if (byte < 0x80) return value;
    }
  }

  #next(): number {
    const byte = this.#bytes[this.#at++];
    if (byte === undefined) throw new RangeError('a stored number is cut off');
    return byte;
  }
}
