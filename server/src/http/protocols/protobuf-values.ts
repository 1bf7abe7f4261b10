import { limits } from '../../limits.ts';
import { tooDeep, tooManyValues } from './otlp-signals.ts';
import { ProtobufReader, eachField, wire, within } from './protobuf-reader.ts';
import type { AttributeValue } from './signal.ts';

/** The numbers of the fields of an AnyValue. */
const value = { text: 1, boolean: 2, integer: 3, double: 4, list: 5, object: 6 } as const;
const textTag = (value.text << 3) | wire.bytes;

/** Whether the value at this offset, which begins with its length, is nothing or an empty text. */
export function isEmptyText(buffer: Buffer, at: number): boolean {
  const length = buffer[at];
  return length === 0 || (length === 2 && buffer[at + 1] === textTag && buffer[at + 2] === 0);
}

export function isShortText(buffer: Buffer, at: number): boolean {
  return (buffer[at] as number) < 0x80 && buffer[at + 1] === textTag;
}

/** Reads values of attributes: texts, numbers, and lists and objects of them, within bounds. */
export class ValueReader {
  readonly #reader: ProtobufReader;
  #valuesLeft = 0;

  constructor(body: Buffer) {
    this.#reader = new ProtobufReader(body);
  }

  /** Reads the value at this offset, which begins with its length. */
  readAt(at: number): AttributeValue {
    const reader = this.#reader;
    reader.enter(at, reader.buffer.length);
    const length = reader.length();
    reader.end = reader.at + length;
    this.#valuesLeft = limits.otlpValuesMax;
    return this.#read(reader, 0);
  }

  /** Reads the name and the value of one attribute. */
  readEntry(reader: ProtobufReader, into: Record<string, AttributeValue>): void {
    this.#valuesLeft = limits.otlpValuesMax;
    this.#readEntry(reader, into, 0);
  }

  #read(reader: ProtobufReader, depth: number): AttributeValue {
    if (depth > limits.otlpDepthMax) tooDeep();
    if (this.#valuesLeft-- === 0) tooManyValues();
    let found: AttributeValue = null;
    while (reader.next()) {
      const { field, wireType } = reader;
      if (field === value.text && wireType === wire.bytes) found = reader.text();
      else if (field === value.boolean && wireType === wire.varint) found = reader.uint32() !== 0;
      else if (field === value.integer && wireType === wire.varint) found = reader.int64();
      else if (field === value.double && wireType === wire.fixed64) found = reader.double();
      else if (field === value.list) found = this.#readList(reader, depth);
      else if (field === value.object) found = this.#readObject(reader, depth);
      else reader.skip();
    }
    return found;
  }

  #readList(reader: ProtobufReader, depth: number): AttributeValue {
    const list: AttributeValue[] = [];
    eachField(reader, 1, () => within(reader, () => list.push(this.#read(reader, depth + 1))));
    return list;
  }

  #readObject(reader: ProtobufReader, depth: number): AttributeValue {
    const object = Object.create(null) as Record<string, AttributeValue>;
    eachField(reader, 1, () => within(reader, () => this.#readEntry(reader, object, depth)));
    return object;
  }

  #readEntry(reader: ProtobufReader, into: Record<string, AttributeValue>, depth: number): void {
    let name = '';
    let found: AttributeValue = null;
    while (reader.next()) {
      if (reader.field === 1 && reader.wireType === wire.bytes) name = reader.text();
      else if (reader.field === 2) {
        within(reader, () => {
          found = this.#read(reader, depth + 1);
        });
      } else reader.skip();
    }
    into[name] = found;
  }
}
