/** OTLP requests as JSON, and the same as protobuf, for tests. */
export interface OtlpSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: OtlpAttribute[];
  events?: { timeUnixNano: string; name: string; attributes: OtlpAttribute[] }[];
  status?: { code?: number; message?: string };
}

export interface OtlpLog {
  timeUnixNano: string;
  traceId?: string;
  spanId?: string;
  eventName?: string;
  body?: OtlpValue;
  attributes: OtlpAttribute[];
}

export interface OtlpAttribute {
  key: string;
  value: OtlpValue;
}

export type OtlpValue =
  | { stringValue: string }
  | { boolValue: boolean }
  | { intValue: string | number }
  | { doubleValue: number }
  | { arrayValue: { values: OtlpValue[] } }
  | { kvlistValue: { values: OtlpAttribute[] } };

export type Plain = string | number | boolean | readonly Plain[] | { [name: string]: Plain };

export function otlpValue(value: Plain): OtlpValue {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number') {
    return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  }
  if (Array.isArray(value)) return { arrayValue: { values: value.map(otlpValue) } };
  return { kvlistValue: { values: otlpAttributes(value as Record<string, Plain>) } };
}

export function otlpAttributes(values: Readonly<Record<string, Plain>>): OtlpAttribute[] {
  return Object.entries(values).map(([key, value]) => ({ key, value: otlpValue(value) }));
}

let spans = 0;

export function hexId(bytes: number): string {
  return `a${(++spans).toString(16).padStart(2 * bytes - 1, '0')}`;
}

export interface SpanWishes extends Partial<Omit<OtlpSpan, 'attributes'>> {
  attributes?: Readonly<Record<string, Plain>>;
  atMs?: number;
  durationMs?: number;
}

/** A model call by the official conventions, unless the attributes say otherwise. */
export function spanOf({
  attributes,
  atMs = Date.now(),
  durationMs = 500,
  ...rest
}: SpanWishes = {}) {
  const span: OtlpSpan = {
    traceId: hexId(16),
    spanId: hexId(8),
    name: 'chat gpt-4o',
    startTimeUnixNano: `${atMs}000000`,
    endTimeUnixNano: `${atMs + durationMs}000000`,
    attributes: otlpAttributes(attributes ?? chatAttributes()),
    ...rest,
  };
  return span;
}

export function chatAttributes(more: Readonly<Record<string, Plain>> = {}): Record<string, Plain> {
  return {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': 'gpt-4o',
    'gen_ai.usage.input_tokens': 12,
    'gen_ai.usage.output_tokens': 5,
    ...more,
  };
}

export function spansRequest(
  list: readonly OtlpSpan[],
  resource: Readonly<Record<string, Plain>> = { 'service.name': 'shop' },
  scope = 'test',
) {
  const scopeSpans = [{ scope: { name: scope }, spans: list }];
  return { resourceSpans: [{ resource: { attributes: otlpAttributes(resource) }, scopeSpans }] };
}

export function logsRequest(
  list: readonly OtlpLog[],
  resource: Readonly<Record<string, Plain>> = { 'service.name': 'shop' },
) {
  const scopeLogs = [{ scope: { name: 'test' }, logRecords: list }];
  return { resourceLogs: [{ resource: { attributes: otlpAttributes(resource) }, scopeLogs }] };
}

export type OtlpRequest = ReturnType<typeof spansRequest> | ReturnType<typeof logsRequest>;

// --- Protobuf ---

const [varintType, fixed64Type, bytesType] = [0, 1, 2];

export function toProtobuf(request: OtlpRequest): Buffer {
  if ('resourceSpans' in request) {
    return join(
      request.resourceSpans.map(({ resource, scopeSpans }) =>
        message(1, [
          message(1, attributesOf(1, resource.attributes)),
          ...scopeSpans.map(({ scope, spans: list }) =>
            message(2, [message(1, [text(1, scope.name)]), ...list.map(encodeSpan)]),
          ),
        ]),
      ),
    );
  }
  return join(
    request.resourceLogs.map(({ resource, scopeLogs }) =>
      message(1, [
        message(1, attributesOf(1, resource.attributes)),
        ...scopeLogs.map(({ scope, logRecords }) =>
          message(2, [message(1, [text(1, scope.name)]), ...logRecords.map(encodeLog)]),
        ),
      ]),
    ),
  );
}

function encodeSpan(span: OtlpSpan): Buffer {
  const { status, events = [], parentSpanId } = span;
  return message(2, [
    bytes(1, Buffer.from(span.traceId, 'hex')),
    bytes(2, Buffer.from(span.spanId, 'hex')),
    ...(parentSpanId === undefined ? [] : [bytes(4, Buffer.from(parentSpanId, 'hex'))]),
    text(5, span.name),
    fixed64(7, span.startTimeUnixNano),
    fixed64(8, span.endTimeUnixNano),
    ...attributesOf(9, span.attributes),
    ...events.map(({ timeUnixNano, name, attributes }) =>
      message(11, [fixed64(1, timeUnixNano), text(2, name), ...attributesOf(3, attributes)]),
    ),
    ...(status ? [message(15, [text(2, status.message ?? ''), integer(3, status.code ?? 0)])] : []),
  ]);
}

function encodeLog({ timeUnixNano, body, attributes, traceId, spanId, eventName }: OtlpLog) {
  return message(2, [
    fixed64(1, timeUnixNano),
    ...(body ? [message(5, [encodeValue(body)])] : []),
    ...attributesOf(6, attributes),
    ...(traceId === undefined ? [] : [bytes(9, Buffer.from(traceId, 'hex'))]),
    ...(spanId === undefined ? [] : [bytes(10, Buffer.from(spanId, 'hex'))]),
    ...(eventName === undefined ? [] : [text(12, eventName)]),
  ]);
}

function attributesOf(field: number, attributes: readonly OtlpAttribute[]): Buffer[] {
  return attributes.map(({ key, value }) =>
    message(field, [text(1, key), message(2, [encodeValue(value)])]),
  );
}

function encodeValue(value: OtlpValue): Buffer {
  if ('stringValue' in value) return text(1, value.stringValue);
  if ('boolValue' in value) return integer(2, value.boolValue ? 1 : 0);
  if ('intValue' in value) return integer(3, value.intValue);
  if ('doubleValue' in value) {
    const double = Buffer.alloc(8);
    double.writeDoubleLE(value.doubleValue);
    return Buffer.concat([tag(4, fixed64Type), double]);
  }
  if ('arrayValue' in value) {
    return message(
      5,
      value.arrayValue.values.map((item) => message(1, [encodeValue(item)])),
    );
  }
  return message(6, attributesOf(1, value.kvlistValue.values));
}

export function message(field: number, parts: readonly Buffer[]): Buffer {
  return bytes(field, join(parts));
}

export function text(field: number, content: string): Buffer {
  return bytes(field, Buffer.from(content));
}

export function bytes(field: number, content: Buffer): Buffer {
  return Buffer.concat([tag(field, bytesType), varint(BigInt(content.length)), content]);
}

function integer(field: number, value: number | string): Buffer {
  return Buffer.concat([tag(field, varintType), varint(BigInt.asUintN(64, BigInt(value)))]);
}

function fixed64(field: number, value: string): Buffer {
  const content = Buffer.alloc(8);
  content.writeBigUInt64LE(BigInt(value));
  return Buffer.concat([tag(field, fixed64Type), content]);
}

function tag(field: number, type = bytesType): Buffer {
  return varint(BigInt((field << 3) | type));
}

function varint(value: bigint): Buffer {
  const list: number[] = [];
  let left = value;
  for (; left >= 0x80n; left >>= 7n) list.push(Number(left & 0x7fn) | 0x80);
  return Buffer.from([...list, Number(left)]);
}

function join(parts: readonly Buffer[]): Buffer {
  return Buffer.concat(parts);
}

// --- Sending ---

export const encodings = ['protobuf', 'json'] as const;
export type Encoding = (typeof encodings)[number];

export function encode(encoding: Encoding, request: OtlpRequest): Buffer {
  return encoding === 'json' ? Buffer.from(JSON.stringify(request)) : toProtobuf(request);
}

export function typeOf(encoding: Encoding): Record<string, string> {
  return { 'content-type': encoding === 'json' ? 'application/json' : 'application/x-protobuf' };
}
