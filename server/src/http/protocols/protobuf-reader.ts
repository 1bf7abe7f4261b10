import { MalformedSignal } from './signal.ts';

/** The body is not a valid protobuf message. */
export class MalformedProtobuf extends MalformedSignal {
  override readonly name = 'MalformedProtobuf';
}

/** How the value of a field is encoded. */
export const wire = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

/**
 * Reads protobuf in place, without building objects for what nobody asks for: a generated decoder would create a million attributes
 * before any limit applies. Every read checks the end of the message that it is in.
 */
export class ProtobufReader {
  readonly buffer: Buffer;
  at = 0;
  end: number;
  /** Of the field that `next` found. */
  field = 0;
  wireType = 0;

  constructor(buffer: Buffer) {
    this.buffer = buffer;
    this.end = buffer.length;
  }

  /** Moves to a part of the buffer. */
  enter(at: number, end: number): void {
    this.at = at;
    this.end = end;
  }

  /** Reads the tag of the next field; false at the end of the message. */
  next(): boolean {
    if (this.at >= this.end) return false;
    const tag = this.uint32();
    this.field = tag >>> 3;
    this.wireType = tag & 7;
    if (this.field === 0) malformed('a field has the number 0');
    return true;
  }

  /** A varint of which the lower 32 bits count. */
  uint32(): number {
    const { buffer } = this;
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.at >= this.end) malformed('a number is cut off');
      const byte = buffer[this.at++] as number;
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    return malformed('a number is too long');
  }

  /** A signed varint of 64 bits. It is exact up to 2^53. */
  int64(): number {
    const { buffer } = this;
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.at >= this.end) malformed('a number is cut off');
      const byte = buffer[this.at++] as number;
      const bits = byte & 0x7f;
      if (shift < 28) low |= bits << shift;
      else if (shift === 28) {
        low |= bits << 28;
        high = bits >>> 4;
      } else if (shift < 63) high |= bits << (shift - 32);
      else high |= (bits & 1) << 31;
      if (byte < 0x80) return (high | 0) * 0x1_0000_0000 + (low >>> 0);
    }
    return malformed('a number is too long');
  }

  /** An unsigned number of 64 bits, divided by a thousand and rounded down. Nanoseconds since 1970 do not fit into a double. */
  thousands(): number {
    if (this.at + 8 > this.end) malformed('a number is cut off');
    const low = this.buffer.readUInt32LE(this.at);
    const high = this.buffer.readUInt32LE(this.at + 4);
    this.at += 8;
    const rest = (high % 1000) * 0x1_0000_0000 + low;
    return Math.floor(high / 1000) * 0x1_0000_0000 + Math.floor(rest / 1000);
  }

  /** Whether the next 64 bits are a zero. Does not read them. */
  isZero64(): boolean {
    if (this.at + 8 > this.end) malformed('a number is cut off');
    return this.buffer.readUInt32LE(this.at) === 0 && this.buffer.readUInt32LE(this.at + 4) === 0;
  }

  double(): number {
    if (this.at + 8 > this.end) malformed('a number is cut off');
    const value = this.buffer.readDoubleLE(this.at);
    this.at += 8;
    return value;
  }

  /** The length of a text, of bytes or of a message, which begins at `at` then. */
  length(): number {
    const length = this.uint32();
    if (length > this.end - this.at) malformed('a field is longer than its message');
    return length;
  }

  /** Invalid UTF-8 becomes U+FFFD. */
  text(): string {
    const length = this.length();
    const start = this.at;
    this.at += length;
    return this.buffer.toString('utf8', start, this.at);
  }

  /** Skips the value of the field that `next` found. */
  skip(): void {
    switch (this.wireType) {
      case wire.varint:
        this.int64();
        return;
      case wire.fixed64:
        this.#advance(8);
        return;
      case wire.bytes:
        this.#advance(this.length());
        return;
      case wire.fixed32:
        this.#advance(4);
        return;
      default:
        malformed(`a field has the wire type ${this.wireType}`);
    }
  }

  /** Fails if the field that `next` found is encoded differently. */
  expect(wireType: number): void {
    if (this.wireType !== wireType) {
      malformed(`field ${this.field} has the wire type ${this.wireType} instead of ${wireType}`);
    }
  }

  #advance(bytes: number): void {
    if (bytes > this.end - this.at) malformed('a field is cut off');
    this.at += bytes;
  }
}

/** Runs `read` inside of the message that `next` found, and continues after it. */
export function within(reader: ProtobufReader, read: () => void): void {
  reader.expect(wire.bytes);
  const length = reader.length();
  const { end } = reader;
  const after = reader.at + length;
  reader.end = after;
  read();
  reader.enter(after, end);
}

/** Runs `read` on each field with this number of the message that `next` found. */
export function eachField(reader: ProtobufReader, field: number, read: () => void): void {
  within(reader, () => {
    while (reader.next()) {
      if (reader.field === field) read();
      else reader.skip();
    }
  });
}

function malformed(reason: string): never {
  throw new MalformedProtobuf(reason);
}
