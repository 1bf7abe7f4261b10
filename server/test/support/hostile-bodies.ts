import { gzipSync, zstdCompressSync } from 'node:zlib';
import { limits } from '../../src/limits.ts';
import { bytes, chatAttributes, encode, message, spanOf, spansRequest, text } from './otlp.ts';
import type { Plain } from './otlp.ts';

/** Bodies that were made to cost the service as much as possible for what they cost their sender. */
export interface HostileBody {
  name: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  body(): Buffer;
}

const json = 'application/json';
const protobuf = 'application/x-protobuf';
const lines = 'application/x-ndjson';

/** JSON texts of about this many bytes, or of another form if that costs more. */
const texts: Readonly<Record<string, (bytes: number) => string>> = {
  'empty lists': (size) => `[${'[],'.repeat(size / 3)}[]]`,
  'empty objects': (size) => `[${'{},'.repeat(size / 3)}{}]`,
  'empty texts': (size) => `["${'","'.repeat(size / 3)}"]`,
  numbers: (size) => `[${'0,'.repeat(size / 2)}0]`,
  'as many values as are allowed': (size) =>
    `[${`"${'x'.repeat(size / limits.bodyValuesMax)}",`.repeat(limits.bodyValuesMax / 2)}0]`,
  'as many names as are allowed': () => objectOf(limits.bodyValuesMax / 3, (i) => `name ${i}`),
  'one name again and again': () => objectOf(limits.bodyValuesMax / 3, () => 'model'),
  'names that are numbers': () =>
    objectOf(limits.bodyValuesMax / 3, (i) => String((i * 7_919) % 4e9)),
  'a long name with children': (size) =>
    `{"${'n'.repeat(size / 5)}":${objectOf(1_000, (i) => `c${i}`)}}`,
  'long names in long names': (size) => nestedNames(size / 8, 6),
  'lists as deep as possible': (size) => '['.repeat(size / 2) + ']'.repeat(size / 2),
  'objects as deep as possible': (size) => '{"a":'.repeat(size / 6) + '0' + '}'.repeat(size / 6),
  'lists that never close': (size) => '['.repeat(size),
  'a text that never ends': (size) => `"${'x'.repeat(size)}`,
  'a text of backslashes': (size) => `"${'\\\\'.repeat(size / 2)}"`,
  'a text of escapes': (size) => `"${'\\u0000'.repeat(size / 6)}"`,
  'a text of lone surrogates': (size) => `"${'\\ud83d'.repeat(size / 6)}"`,
  'a text of wide characters': (size) => `"${'😀'.repeat(size / 4)}"`,
  'a number of many digits': (size) => '9'.repeat(size),
  'a number of many decimals': (size) => `0.${'1'.repeat(size)}`,
  spaces: (size) => `${' '.repeat(size)}{}`,
  commas: (size) => `[${','.repeat(size)}]`,
  'lines of numbers': (size) => '0\n'.repeat(size / 2),
  'empty lines': (size) => '\n'.repeat(size),
  'lines of objects': (size) => '{"model":"m"}\n'.repeat(size / 14),
};

function objectOf(count: number, name: (i: number) => string): string {
  return `{${Array.from({ length: count }, (_, i) => `"${name(i)}":${i}`).join()}}`;
}

function nestedNames(chars: number, depth: number): string {
  const name = 'n'.repeat(chars);
  return depth === 0
    ? objectOf(200, (i) => `${i}`)
    : `{"${name}":${nestedNames(chars, depth - 1)}}`;
}

interface Place {
  path: string;
  type: string;
  bytesMax: number;
  around(text: string): Buffer;
}

const inText = (before: string, after: string) => (value: string) =>
  Buffer.from(`${before}${value}${after}`);
const small = limits.bodyBytesMax - 1_000;
const large = limits.batchBodyBytesMax - 1_000;

/** An attribute of a span that contains a JSON text. */
function attribute(name: string, encoding: 'json' | 'protobuf'): Place {
  return {
    path: '/v1/traces',
    type: encoding === 'json' ? json : protobuf,
    // Quotes and backslashes are escaped once more.
    bytesMax: encoding === 'json' ? large / 2 : large,
    around: (value) => encode(encoding, callWith({ [name]: value })),
  };
}

function callWith(attributes: Readonly<Record<string, Plain>>, resource = {}) {
  return spansRequest([spanOf({ attributes: chatAttributes(attributes) })], resource);
}

/** Where such a text can be in a request. */
const places: Readonly<Record<string, Place>> = {
  'a trace': {
    path: '/traces',
    type: json,
    bytesMax: small,
    around: (value) => Buffer.from(value),
  },
  'an unknown field of a trace': {
    path: '/traces',
    type: json,
    bytesMax: small,
    around: inText('{"model":"m","x":', '}'),
  },
  'the metadata of a trace': {
    path: '/traces',
    type: json,
    bytesMax: small,
    around: inText('{"model":"m","metadata":', '}'),
  },
  'the traces of a batch': {
    path: '/traces/batch',
    type: json,
    bytesMax: large,
    around: inText('{"traces":', '}'),
  },
  'a trace of a batch': {
    path: '/traces/batch',
    type: json,
    bytesMax: large,
    around: inText('{"traces":[{"model":"m"},', ']}'),
  },
  'a body of LiteLLM': {
    path: '/ingest/litellm',
    type: lines,
    bytesMax: large,
    around: (value) => Buffer.from(value),
  },
  'a payload of LiteLLM': {
    path: '/ingest/litellm',
    type: json,
    bytesMax: large / 2,
    around: (value) => Buffer.from(`{"model":"m","metadata":${value},"messages":${value}}`),
  },
  'a request of OpenTelemetry': {
    path: '/v1/traces',
    type: json,
    bytesMax: large,
    around: inText('{"resourceSpans":', '}'),
  },
  'the attributes of a log record': {
    path: '/v1/logs',
    type: json,
    bytesMax: large,
    around: inText(
      '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"eventName":"x","attributes":',
      '}]}]}]}',
    ),
  },
  'the messages of a span': attribute('gen_ai.output.messages', 'json'),
  'the messages of a span as protobuf': attribute('gen_ai.input.messages', 'protobuf'),
  'the parameters of a span': attribute('llm.invocation_parameters', 'json'),
  'the parameters of a span as protobuf': attribute('llm.invocation_parameters', 'protobuf'),
  'the usage of a span as protobuf': attribute('ai.response.providerMetadata', 'protobuf'),
};

const codings = {
  plain: (body: Buffer) => body,
  gzip: (body: Buffer) => gzipSync(body, { level: 1 }),
  zstd: zstdCompressSync,
} as const;
const codingNames = Object.keys(codings) as (keyof typeof codings)[];

function coded(
  name: string,
  { path, type }: Pick<Place, 'path' | 'type'>,
  coding: keyof typeof codings,
  make: () => Buffer,
): HostileBody {
  return {
    name: `${name} (${coding})`,
    path,
    headers: {
      'content-type': type,
      ...(coding !== 'plain' && { 'content-encoding': coding }),
    },
    body: () => codings[coding](make()),
  };
}

/** Every text in every place, `factor` times as large as the largest body that is taken. */
export function* generatedBodies(factor = 1): Generator<HostileBody> {
  let next = 0;
  for (const [what, textOf] of Object.entries(texts)) {
    for (const [where, place] of Object.entries(places)) {
      const coding = codingNames[next++ % codingNames.length] as keyof typeof codings;
      const size = Math.floor(factor * place.bytesMax);
      yield coded(`${what} in ${where}`, place, coding, () => place.around(textOf(size)));
    }
  }
}

const spansPath = { path: '/v1/traces', type: protobuf };
const jsonSpansPath = { path: '/v1/traces', type: json };
const litellmPath = { path: '/ingest/litellm', type: json };
const repeated = (count: number, part: string | Buffer): Buffer =>
  Buffer.alloc(count * part.length, part);
const oneSpan = () => spanOf({ attributes: chatAttributes() });

/** Bodies that stopped the service once, `factor` times as large as then. */
export function* knownBodies(factor = 1): Generator<HostileBody> {
  const times = (count: number): number => Math.round(count * factor);
  yield coded('many empty scopes of a large resource', jsonSpansPath, 'gzip', () => {
    const attributes = `{"key":"a","value":{"stringValue":"x"}},`.repeat(times(10_000) - 1);
    const last = '{"key":"b","value":{"stringValue":"x"}}';
    return Buffer.from(
      `{"resourceSpans":[{"resource":{"attributes":[${attributes}${last}]},"scopeSpans":[${'{},'.repeat(times(40_000))}{}]}]}`,
    );
  });
  const longName = () =>
    `{"${'n'.repeat(times(1_000_000))}":${objectOf(times(1_000), (i) => `c${i}`)}}`;
  yield coded('parameters with a long name', spansPath, 'gzip', () =>
    encode('protobuf', callWith({ 'llm.invocation_parameters': longName() })),
  );
  yield coded('a payload with a long name', litellmPath, 'gzip', () =>
    Buffer.from(`{"model":"m",${longName().slice(1)}`),
  );
  yield coded('metadata with a long name', litellmPath, 'gzip', () =>
    Buffer.from(`{"model":"m","metadata":${longName()}}`),
  );
  yield coded('lines of numbers', litellmPath, 'gzip', () => repeated(times(10_000_000), '0\n'));
  yield coded('newlines', litellmPath, 'gzip', () => repeated(times(20_000_000), '\n'));
  yield coded('messages of empty lists', spansPath, 'gzip', () =>
    encode(
      'protobuf',
      callWith({ 'gen_ai.output.messages': `[${'[],'.repeat(times(6_000_000))}[]]` }),
    ),
  );
  yield coded('messages a million levels deep', spansPath, 'gzip', () => {
    const depth = times(1_000_000);
    return encode(
      'protobuf',
      callWith({ 'gen_ai.output.messages': '['.repeat(depth) + ']'.repeat(depth) }),
    );
  });
  yield coded('a long name of a service with many spans', spansPath, 'gzip', () =>
    encode(
      'protobuf',
      spansRequest(Array.from({ length: 1_000 }, oneSpan), {
        'service.name': 'x'.repeat(times(15_000_000)),
      }),
    ),
  );
  yield* protobufBodies(times);
}

const inScope = (spans: Buffer): Buffer => bytes(1, bytes(2, spans));
const inSpan = (fields: Buffer): Buffer => inScope(bytes(2, fields));

/** What only protobuf can express. */
function* protobufBodies(times: (count: number) => number): Generator<HostileBody> {
  const bodies: Readonly<Record<string, () => Buffer>> = {
    'empty spans': () => inScope(repeated(times(10_000_000), Buffer.from([0x12, 0]))),
    'spans of one byte': () => inScope(repeated(49_999, Buffer.from([0x12, 1, 0x12]))),
    'empty scopes': () => repeated(times(4_000_000), bytes(1, bytes(2, Buffer.alloc(0)))),
    'empty resources': () => repeated(times(10_000_000), Buffer.from([0x0a, 0])),
    'attributes of a span': () =>
      inSpan(repeated(times(1_000_000), message(9, [text(1, 'a'), bytes(2, text(1, 'x'))]))),
    'events of a span': () => inSpan(repeated(times(10_000_000), Buffer.from([0x5a, 0]))),
    'links of a span': () => inSpan(repeated(times(10_000_000), Buffer.from([0x6a, 0]))),
    'unknown fields of a span': () => inSpan(repeated(times(10_000_000), Buffer.from([0x78, 0]))),
    'attributes of an event': () =>
      inSpan(
        bytes(
          11,
          Buffer.concat([
            text(2, 'gen_ai.choice'),
            repeated(times(1_000_000), message(3, [text(1, 'a'), bytes(2, text(1, 'x'))])),
          ]),
        ),
      ),
    'messages of a span by their positions': () =>
      inSpan(
        repeated(
          times(400_000),
          message(9, [text(1, 'gen_ai.prompt.7.content'), bytes(2, text(1, 'x'))]),
        ),
      ),
    'fields that announce more than there is': () =>
      inScope(Buffer.from([0x12, 0xff, 0xff, 0xff, 0xff, 0x0f])),
  };
  for (const [name, make] of Object.entries(bodies)) yield coded(name, spansPath, 'gzip', make);
}
