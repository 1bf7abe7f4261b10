import { limits } from '../../limits.ts';
import { SlotAttributes, nameCharsMax } from './attributes.ts';
import {
  malformedSignal,
  isEventOfInterest,
  openSignal,
  tooManyAttributes,
  tooManySignals,
} from './otlp-signals.ts';
import type { Signals } from './otlp-signals.ts';
import { ValueReader, isEmptyText, isShortText } from './protobuf-values.ts';
import { MalformedProtobuf, ProtobufReader, eachField, wire, within } from './protobuf-reader.ts';
import { RejectedSignal } from './signal.ts';
import type { AttributeValue, Signal, SignalEvent } from './signal.ts';

/** The numbers of fields, from the .proto files of OpenTelemetry. Both kinds of request have the same outer fields. */
const outer = { resources: 1, resource: 1, scopes: 2, scope: 1, signals: 2 } as const;
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

/** Where the signals of a scope are, and what they share. */
interface ScopePart {
  resourceAt: number;
  resourceEnd: number;
  scope: string;
  /** The start and end of each signal. */
  signals: number[];
}

/**
 * The spans or log records of a request, one after the other in the same object. The structure of the whole body is checked first, so a
 * body that is cut off fails before anything is read from it.
 */
export function readProtobuf(body: Buffer, kind: Signal['kind']): Signals {
  const parts = findSignals(new ProtobufReader(body));
  const count = parts.reduce((sum, { signals }) => sum + signals.length / 2, 0);
  return { count, [Symbol.iterator]: () => new SignalReader(body, kind).read(parts) };
}

function findSignals(reader: ProtobufReader): ScopePart[] {
  const parts: ScopePart[] = [];
  let count = 0;
  eachMessage(reader, outer.resources, () => {
    const found: ScopePart[] = [];
    let [resourceAt, resourceEnd] = [0, 0];
    while (reader.next()) {
      if (reader.field === outer.resource && reader.wireType === wire.bytes) {
        const length = reader.length();
        resourceAt = reader.at;
        resourceEnd = reader.at += length;
      } else if (reader.field === outer.scopes) {
        within(reader, () => {
          const part: ScopePart = { resourceAt: 0, resourceEnd: 0, scope: '', signals: [] };
          readScope(reader, part);
          count += part.signals.length / 2;
          if (count > limits.otlpSignalsMax) tooManySignals();
          found.push(part);
        });
      } else {
        reader.skip();
      }
    }
    for (const part of found) parts.push(Object.assign(part, { resourceAt, resourceEnd }));
  });
  return parts;
}

function readScope(reader: ProtobufReader, part: ScopePart): void {
  while (reader.next()) {
    if (reader.field === outer.scope && reader.wireType === wire.bytes) {
      eachField(reader, 1, () => {
        reader.expect(wire.bytes);
        part.scope = reader.text();
      });
    } else if (reader.field === outer.signals) {
      reader.expect(wire.bytes);
      const length = reader.length();
      part.signals.push(reader.at, reader.at + length);
      reader.at += length;
      if (part.signals.length > 2 * limits.otlpSignalsMax) tooManySignals();
    } else {
      reader.skip();
    }
  }
}

/** Runs `read` on each message with this field number, and skips the other fields. */
function eachMessage(reader: ProtobufReader, field: number, read: () => void): void {
  while (reader.next()) {
    if (reader.field === field) within(reader, read);
    else reader.skip();
  }
}

class SignalReader {
  readonly #reader: ProtobufReader;
  readonly #kind: Signal['kind'];
  readonly #values: ValueReader;
  readonly #attributes: SlotAttributes;
  readonly #resource: SlotAttributes;
  readonly #signal: Signal;
  #attributesLeft = 0;
  #events: SignalEvent[] = [];

  constructor(body: Buffer, kind: Signal['kind']) {
    this.#reader = new ProtobufReader(body);
    this.#kind = kind;
    this.#values = new ValueReader(body);
    const read = (raw: unknown): AttributeValue => this.#values.readAt(raw as number);
    this.#attributes = new SlotAttributes(read);
    this.#resource = new SlotAttributes(read);
    this.#signal = openSignal(kind, this.#attributes, this.#resource);
  }

  *read(parts: readonly ScopePart[]): Generator<Signal, void, undefined> {
    let resourceAt = -1;
    for (const part of parts) {
      if (part.resourceAt !== resourceAt) this.#readResource(part);
      resourceAt = part.resourceAt;
      this.#signal.scope = part.scope;
      for (let i = 0; i < part.signals.length; i += 2) {
        this.#reader.enter(part.signals[i] as number, part.signals[i + 1] as number);
        this.#signal.rejectedBy = this.#readSignal();
        yield this.#signal;
      }
    }
  }

  #readResource({ resourceAt, resourceEnd }: ScopePart): void {
    const reader = this.#reader;
    reader.enter(resourceAt, resourceEnd);
    this.#signal.app += 1;
    this.#resource.slots.clear();
    this.#attributesLeft = limits.otlpAttributesMax;
    while (reader.next()) {
      if (reader.field === 1) this.#readAttribute(this.#resource);
      else reader.skip();
    }
  }

  /** The reason if the signal cannot be accepted. */
  #readSignal(): string | null {
    const signal = this.#signal;
    signal.name = signal.traceId = signal.spanId = signal.parentSpanId = signal.statusMessage = '';
    signal.startUs = signal.endUs = 0;
    signal.isError = false;
    if (this.#events.length > 0) this.#events = [];
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
      if (error instanceof RejectedSignal) return error.message;
      // The parts around it are valid, so the others can be stored.
      if (error instanceof MalformedProtobuf) return malformedSignal;
      throw error;
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
    this.#reader.expect(wire.bytes);
    const id = this.#reader.hex();
    return /^0*$/.test(id) ? '' : id;
  }

  #text(): string {
    this.#reader.expect(wire.bytes);
    return this.#reader.text();
  }

  #microseconds(): number {
    this.#reader.expect(wire.fixed64);
    return this.#reader.thousands();
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
        // The names that we look for are ASCII.
        if (nameLength <= nameCharsMax) {
          name = reader.buffer.toString('latin1', reader.at, reader.at + nameLength);
        }
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
    const start = reader.at;
    let name = '';
    eachField(reader, 2, () => {
      name = this.#text();
    });
    if (!isEventOfInterest(name) || this.#events.length >= limits.otlpEventsMax) return;
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
