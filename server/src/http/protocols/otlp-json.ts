import { limits } from '../../limits.ts';
import { SlotAttributes, isEmpty } from './attributes.ts';
import {
  atLeastOne,
  idOrNone,
  isEventOfInterest,
  openSignal,
  tooDeep,
  tooManyAttributes,
  tooManySignals,
} from './otlp-signals.ts';
import type { Signals } from './otlp-signals.ts';
import { MalformedSignal, isObject, reasonToReject } from './signal.ts';
import type { AttributeValue, Signal, SignalEvent } from './signal.ts';

/** The body is JSON, but not an OTLP request. The message names the field. */
export class MalformedOtlpJson extends MalformedSignal {
  override readonly name = 'MalformedOtlpJson';
}

type Fields = Readonly<Record<string, unknown>>;

/** The names of the lists of a request, from the outside to the inside. */
const lists = {
  span: ['resourceSpans', 'scopeSpans', 'spans'],
  log: ['resourceLogs', 'scopeLogs', 'logRecords'],
} as const;

interface ScopePart {
  resource: Fields;
  scope: string;
  signals: readonly Fields[];
}

/** The same as `readProtobuf` for a body that is parsed JSON. */
export function readJson(body: unknown, kind: Signal['kind']): Signals {
  if (!isFields(body)) malformed('the body', 'an object');
  const parts = findSignals(body, lists[kind]);
  const count = parts.reduce((sum, { signals }) => sum + signals.length, 0);
  if (count > limits.otlpSignalsMax) tooManySignals();
  return { count, [Symbol.iterator]: () => new SignalReader(kind).read(parts) };
}

function findSignals(body: Fields, [outer, middle, inner]: readonly [string, string, string]) {
  const parts: ScopePart[] = [];
  for (const [i, group] of listIn(body, outer, '').entries()) {
    const path = `${outer}[${i}].`;
    const resource = objectIn(group, 'resource', path);
    for (const [k, scoped] of listIn(group, middle, path).entries()) {
      const inside = `${path}${middle}[${k}].`;
      const { name } = objectIn(scoped, 'scope', inside);
      const signals = listIn(scoped, inner, inside);
      parts.push({ resource, scope: typeof name === 'string' ? name : '', signals });
    }
  }
  return parts;
}

class SignalReader {
  readonly #kind: Signal['kind'];
  readonly #attributes = new SlotAttributes((raw) => readValue(raw, 0));
  readonly #resource = new SlotAttributes((raw) => readValue(raw, 0));
  readonly #signal: Signal;

  constructor(kind: Signal['kind']) {
    this.#kind = kind;
    this.#signal = openSignal(kind, this.#attributes, this.#resource);
  }

  *read(parts: readonly ScopePart[]): Generator<Signal, void, undefined> {
    let lastResource: Fields | null = null;
    let problem: string | null = null;
    for (const { resource, scope, signals } of parts) {
      if (resource !== lastResource) {
        problem = this.#readResource(resource);
        this.#signal.app += 1;
      }
      lastResource = resource;
      this.#signal.scope = scope;
      for (const fields of signals) {
        this.#signal.rejectedBy = problem ?? this.#readSignal(fields);
        yield this.#signal;
      }
    }
  }

  /** The reason if the signals of the resource cannot be accepted. */
  #readResource(resource: Fields): string | null {
    try {
      setAttributes(this.#resource, resource, 'resource.');
      this.#resource.readAll();
      return null;
    } catch (error) {
      return reasonToReject(error);
    }
  }

  #readSignal(fields: Fields): string | null {
    try {
      if (this.#kind === 'span') this.#readSpan(fields);
      else this.#readLog(fields);
      setAttributes(this.#attributes, fields, '');
      this.#attributes.unfoldJson();
      return null;
    } catch (error) {
      return reasonToReject(error);
    }
  }

  #readSpan(fields: Fields): void {
    const signal = this.#signal;
    const status = objectIn(fields, 'status', '');
    signal.name = textIn(fields, 'name');
    signal.traceId = idIn(fields, 'traceId');
    signal.spanId = idIn(fields, 'spanId');
    signal.parentSpanId = idIn(fields, 'parentSpanId');
    signal.startUs = microseconds(fields, 'startTimeUnixNano');
    signal.endUs = microseconds(fields, 'endTimeUnixNano');
    signal.isError = status['code'] === 2 || status['code'] === 'STATUS_CODE_ERROR';
    signal.statusMessage = textIn(status, 'message');
    signal.events = eventsOf(fields);
  }

  #readLog(fields: Fields): void {
    const signal = this.#signal;
    const body = readValue(fields['body'], 0);
    signal.name = textIn(fields, 'eventName') || (typeof body === 'string' ? body : '');
    signal.traceId = idIn(fields, 'traceId');
    signal.spanId = idIn(fields, 'spanId');
    signal.endUs =
      microseconds(fields, 'timeUnixNano') || microseconds(fields, 'observedTimeUnixNano');
  }
}

function setAttributes(into: SlotAttributes, holder: Fields, path: string): void {
  into.slots.clear();
  const list = listIn(holder, 'attributes', path);
  if (list.length > limits.otlpAttributesMax) tooManyAttributes();
  for (const { key, value } of list) {
    if (typeof key === 'string' && !isEmptyValue(value)) into.slots.set(key, value);
  }
}

function isEmptyValue(value: unknown): boolean {
  return !isFields(value) || isEmpty(value['stringValue'] ?? Object.values(value)[0]);
}

function eventsOf(fields: Fields): SignalEvent[] {
  const events: SignalEvent[] = [];
  for (const event of listIn(fields, 'events', '')) {
    const name = textIn(event, 'name');
    if (!isEventOfInterest(name)) continue;
    const attributes = Object.create(null) as Record<string, AttributeValue>;
    for (const { key, value } of listIn(event, 'attributes', 'events.')) {
      if (typeof key === 'string') attributes[key] = readValue(value, 0);
    }
    events.push({ name, attributes });
    if (events.length >= limits.otlpEventsMax) break;
  }
  return events;
}

/** Reads an AnyValue. Integers may be numbers or texts. */
function readValue(value: unknown, depth: number): AttributeValue {
  if (depth > limits.otlpDepthMax) tooDeep();
  if (!isFields(value)) return null;
  const { stringValue, boolValue, intValue, doubleValue, arrayValue, kvlistValue } = value;
  if (typeof stringValue === 'string') return stringValue;
  if (typeof boolValue === 'boolean') return boolValue;
  if (typeof intValue === 'number' || typeof intValue === 'string') return Number(intValue);
  if (typeof doubleValue === 'number' || typeof doubleValue === 'string') {
    return Number(doubleValue);
  }
  if (isFields(arrayValue)) {
    return listIn(arrayValue, 'values', '').map((item) => readValue(item, depth + 1));
  }
  if (!isFields(kvlistValue)) return null;
  const object = Object.create(null) as Record<string, AttributeValue>;
  for (const { key, value: inner } of listIn(kvlistValue, 'values', '')) {
    if (typeof key === 'string') object[key] = readValue(inner, depth + 1);
  }
  return object;
}

/** A missing list is an empty one. */
function listIn(holder: Fields, name: string, path: string): readonly Fields[] {
  const list = holder[name];
  if (list === undefined || list === null) return [];
  if (!Array.isArray(list) || !list.every(isFields)) {
    return malformed(`${path}${name}`, 'a list of objects');
  }
  return list;
}

function objectIn(holder: Fields, name: string, path: string): Fields {
  const value = holder[name];
  if (value === undefined || value === null) return {};
  return isFields(value) ? value : malformed(`${path}${name}`, 'an object');
}

function textIn(holder: Fields, name: string): string {
  const value = holder[name];
  return typeof value === 'string' ? value : '';
}

/** Hexadecimal, not the base64 that JSON of protobuf usually has. */
function idIn(fields: Fields, name: string): string {
  const id = textIn(fields, name).toLowerCase();
  return /^[0-9a-f]+$/.test(id) ? idOrNone(id) : '';
}

/** A number of nanoseconds, or its digits, as microseconds. */
function microseconds(fields: Fields, name: string): number {
  const value = fields[name];
  if (value === undefined || value === null || value === '') return 0;
  if (typeof value === 'number' && value >= 0) return atLeastOne(value, Math.floor(value / 1000));
  if (typeof value !== 'string' || !/^\d{1,20}$/.test(value)) {
    return malformed(name, 'a number of nanoseconds');
  }
  return atLeastOne(Number(value), Number(value.slice(0, -3)));
}

const isFields: (value: unknown) => value is Fields = isObject;

function malformed(field: string, expected: string): never {
  throw new MalformedOtlpJson(`${field} must be ${expected}`);
}
