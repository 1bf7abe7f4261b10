/** Unsigned integers of any size in as few bytes as needed: seven bits per byte, lowest first, the high bit set if more follow. */
export class VarintWriter {
  readonly #bytes: number[] = [];

  write(value: number | bigint): void {
    if (typeof value === 'bigint' && value > maxSafe) {
      this.#bytes.push(Number(value & 0x7fn) | 0x80);
      this.write(value >> 7n);
      return;
    }
    let rest = Number(value);
    while (rest >= 0x80) {
      this.#bytes.push((rest % 0x80) | 0x80);
      rest = Math.floor(rest / 0x80);
    }
    this.#bytes.push(rest);
  }

  bytes(): Uint8Array {
    return Uint8Array.from(this.#bytes);
  }
}

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

  readBigInt(): bigint {
    let low = 0;
    let byte = 0x80;
    for (let unit = 1; byte >= 0x80 && unit < 2 ** 49; unit *= 0x80) {
      byte = this.#next();
      low += (byte & 0x7f) * unit;
    }
    let value = BigInt(low);
    for (let shift = 49n; byte >= 0x80; shift += 7n) {
      byte = this.#next();
      value += BigInt(byte & 0x7f) << shift;
    }
    return value;
  }

  #next(): number {
    const byte = this.#bytes[this.#at++];
    if (byte === undefined) throw new RangeError('a stored number is cut off');
    return byte;
  }
}

const maxSafe = BigInt(Number.MAX_SAFE_INTEGER);
