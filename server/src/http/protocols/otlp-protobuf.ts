import { limits } from '../../limits.ts';
import { SlotAttributes, nameCharsMax } from './attributes.ts';
import { findSignals } from './otlp-parts.ts';
import type { ScopePart } from './otlp-parts.ts';
import {
  atLeastOne,
  idCharsMax,
  idOrNone,
  isEventOfInterest,
  openSignal,
  tooManyAttributes,
} from './otlp-signals.ts';
import type { Signals } from './otlp-signals.ts';
import { ValueReader, isEmptyText, isShortText } from './protobuf-values.ts';
import { ProtobufReader, eachField, wire, within } from './protobuf-reader.ts';
import { reasonToReject } from './signal.ts';
import type { AttributeValue, Signal, SignalEvent } from './signal.ts';

/** The numbers of fields, from the .proto files of OpenTelemetry. */
const span = {
  traceId: 1,
  spanId: 2,
  parentSpanId: 4,
  name: 5,
  start: 7,
  end: 8,
  attributes: 9,
  events: 11,
  status: 15,
} as const;
const log = {
  time: 1,
  body: 5,
  attributes: 6,
  traceId: 9,
  spanId: 10,
  observedTime: 11,
  eventName: 12,
} as const;

/**
 * The spans or log records of a request, one after the other in the same object. The structure of the whole body is checked first, so a
 * body that is cut off fails before anything is read from it.
 */
export function readProtobuf(body: Buffer, kind: Signal['kind']): Signals {
  const parts = findSignals(body);
  const count = parts.reduce((sum, { signals }) => sum + signals.length / 2, 0);
  return { count, [Symbol.iterator]: () => new SignalReader(body, kind).read(parts) };
}

class SignalReader {
  readonly #reader: ProtobufReader;
  readonly #kind: Signal['kind'];
  readonly #values: ValueReader;
  readonly #names: AttributeNames;
  readonly #attributes: SlotAttributes;
  readonly #resource: SlotAttributes;
  readonly #signal: Signal;
  #attributesLeft = 0;
  #eventsLeft = 0;
  #events: SignalEvent[] = [];

  constructor(body: Buffer, kind: Signal['kind']) {
    this.#reader = new ProtobufReader(body);
    this.#kind = kind;
    this.#values = new ValueReader(body);
    this.#names = new AttributeNames(body);
    const read = (raw: unknown): AttributeValue => this.#values.readAt(raw as number);
    this.#attributes = new SlotAttributes(read);
    this.#resource = new SlotAttributes(read);
    this.#signal = openSignal(kind, this.#attributes, this.#resource);
  }

  *read(parts: readonly ScopePart[]): Generator<Signal, void, undefined> {
    let resourceAt = -1;
    let problem: string | null = null;
    for (const part of parts) {
      if (part.resourceAt !== resourceAt) problem = this.#readResource(part);
      resourceAt = part.resourceAt;
      this.#signal.scope = part.scope;
      for (let i = 0; i < part.signals.length; i += 2) {
        this.#reader.enter(part.signals[i] as number, part.signals[i + 1] as number);
        this.#signal.rejectedBy = problem ?? this.#readSignal();
        yield this.#signal;
      }
    }
  }

  /** The reason if the signals of the resource cannot be accepted. */
  #readResource({ resourceAt, resourceEnd }: ScopePart): string | null {
    const reader = this.#reader;
    reader.enter(resourceAt, resourceEnd);
    this.#signal.app += 1;
    this.#resource.slots.clear();
    this.#attributesLeft = limits.otlpAttributesMax;
    try {
      while (reader.next()) {
        if (reader.field === 1) this.#readAttribute(this.#resource);
        else reader.skip();
      }
      this.#resource.readAll();
      return null;
    } catch (error) {
      return reasonToReject(error);
    }
  }

  /** The reason if the signal cannot be accepted. */
  #readSignal(): string | null {
    const signal = this.#signal;
    signal.name = signal.traceId = signal.spanId = signal.parentSpanId = signal.statusMessage = '';
    signal.startUs = signal.endUs = 0;
    signal.isError = false;
    if (this.#events.length > 0) this.#events = [];
    this.#eventsLeft = limits.otlpEventsMax;
    this.#attributes.slots.clear();
    this.#attributesLeft = limits.otlpAttributesMax;
    const reader = this.#reader;
    try {
      while (reader.next()) {
        if (this.#kind === 'span') this.#readSpanField();
        else this.#readLogField();
      }
      signal.events = this.#events;
      this.#attributes.unfoldJson();
      return null;
    } catch (error) {
      // The parts around it are valid, so the others can be stored.
      return reasonToReject(error);
    }
  }

  #readSpanField(): void {
    const reader = this.#reader;
    const signal = this.#signal;
    switch (reader.field) {
      case span.traceId:
        signal.traceId = this.#id();
        return;
      case span.spanId:
        signal.spanId = this.#id();
        return;
      case span.parentSpanId:
        signal.parentSpanId = this.#id();
        return;
      case span.name:
        signal.name = this.#text();
        return;
      case span.start:
        signal.startUs = this.#microseconds();
        return;
      case span.end:
        signal.endUs = this.#microseconds();
        return;
      case span.attributes:
        this.#readAttribute(this.#attributes);
        return;
      case span.events:
        this.#readEvent();
        return;
      case span.status:
        this.#readStatus();
        return;
      default:
        reader.skip();
    }
  }

  #readLogField(): void {
    const reader = this.#reader;
    const signal = this.#signal;
    switch (reader.field) {
      case log.time:
        signal.endUs = this.#microseconds();
        return;
      case log.observedTime: {
        const us = this.#microseconds();
        if (signal.endUs === 0) signal.endUs = us;
        return;
      }
      case log.traceId:
        signal.traceId = this.#id();
        return;
      case log.spanId:
        signal.spanId = this.#id();
        return;
      case log.eventName:
        signal.name = this.#text();
        return;
      case log.attributes:
        this.#readAttribute(this.#attributes);
        return;
      case log.body:
        this.#readBody();
        return;
      default:
        reader.skip();
    }
  }

  /** Some emitters have the name of the event only here. */
  #readBody(): void {
    this.#reader.expect(wire.bytes);
    const raw = this.#reader.at;
    this.#reader.skip();
    if (this.#signal.name === '' && isShortText(this.#reader.buffer, raw)) {
      const body = this.#values.readAt(raw);
      if (typeof body === 'string') this.#signal.name = body;
    }
  }

  #id(): string {
    const reader = this.#reader;
    reader.expect(wire.bytes);
    const length = reader.length();
    const start = reader.at;
    reader.at += length;
    if (2 * length > idCharsMax) return '';
    return idOrNone(reader.buffer.toString('hex', start, reader.at));
  }

  #text(): string {
    this.#reader.expect(wire.bytes);
    return this.#reader.text();
  }

  #microseconds(): number {
    const reader = this.#reader;
    reader.expect(wire.fixed64);
    const isSet = !reader.isZero64();
    return atLeastOne(isSet ? 1 : 0, reader.thousands());
  }

  #readStatus(): void {
    const reader = this.#reader;
    within(reader, () => {
      while (reader.next()) {
        if (reader.field === 2) this.#signal.statusMessage = this.#text();
        else if (reader.field === 3 && reader.wireType === wire.varint) {
          this.#signal.isError = reader.uint32() === 2;
        } else reader.skip();
      }
    });
  }

  /** Notes where the value is, if the table names the attribute. */
  #readAttribute(into: SlotAttributes): void {
    if (this.#attributesLeft-- === 0) tooManyAttributes();
    const place = limits.otlpAttributesMax - this.#attributesLeft;
    const reader = this.#reader;
    reader.expect(wire.bytes);
    const length = reader.length();
    const { end } = reader;
    const after = reader.at + length;
    reader.end = after;
    let name = '';
    let valueAt = -1;
    while (reader.next()) {
      if (reader.field === 1 && reader.wireType === wire.bytes) {
        const nameLength = reader.length();
        if (nameLength <= nameCharsMax) name = this.#names.read(reader.at, nameLength, place);
        reader.at += nameLength;
      } else if (reader.field === 2 && reader.wireType === wire.bytes) {
        valueAt = reader.at;
        reader.skip();
      } else {
        reader.skip();
      }
    }
    reader.at = after;
    reader.end = end;
    if (valueAt !== -1 && name !== '' && !isEmptyText(reader.buffer, valueAt)) {
      into.slots.set(name, valueAt);
    }
  }

  #readEvent(): void {
    const reader = this.#reader;
    if (this.#eventsLeft-- <= 0) {
      reader.skip();
      return;
    }
    const start = reader.at;
    let name = '';
    eachField(reader, 2, () => {
      name = this.#text();
    });
    if (!isEventOfInterest(name)) return;
    const after = reader.at;
    reader.at = start;
    reader.wireType = wire.bytes;
    const attributes: Record<string, AttributeValue> = Object.create(null);
    eachField(reader, 3, () => {
      if (this.#attributesLeft-- === 0) tooManyAttributes();
      within(reader, () => this.#values.readEntry(reader, attributes));
    });
    reader.at = after;
    this.#events.push({ name, attributes });
  }
}

/**
 * Emitters send the same attributes in the same order with every span, so most names are those at the same place in the span before.
 * To compare their bytes is cheaper than to make another text of them.
 */
class AttributeNames {
  readonly #body: Buffer;
  readonly #last: { at: number; name: string }[] = [];

  constructor(body: Buffer) {
    this.#body = body;
  }

  read(at: number, length: number, place: number): string {
    const last = this.#last[place];
    if (last?.name.length === length && this.#areEqual(last.at, at, length)) return last.name;
    // The names that we look for are ASCII.
    const name = this.#body.toString('latin1', at, at + length);
    if (place < placesMax) this.#last[place] = { at, name };
    return name;
  }

  #areEqual(one: number, other: number, length: number): boolean {
    const body = this.#body;
    // From the end: most names begin alike.
    for (let i = length - 1; i >= 0; i--) if (body[one + i] !== body[other + i]) return false;
    return true;
  }
}

const placesMax = 64;
