import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { constants, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { draftTrace } from '../../core/trace.ts';
import type { TraceDraft, TraceInput } from '../../core/trace-fields.ts';
import { fail } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { fieldErrors } from '../field-errors.ts';
import { readCalls } from '../protocols/read-calls.ts';
import { readLitellm } from '../protocols/litellm.ts';
import { MalformedOtlpJson, readJson } from '../protocols/otlp-json.ts';
import { readProtobuf } from '../protocols/otlp-protobuf.ts';
import type { Signals } from '../protocols/otlp-signals.ts';
import { MalformedProtobuf } from '../protocols/protobuf-reader.ts';
import { BatchBody, TraceBody } from '../trace-schemas.ts';
import type { Validator } from '../validators.ts';
import { JsonOverBounds, parseJson } from './bounded-json.ts';
import type { DecodeJob, DecodedReply } from './decode-job.ts';
import { partsOf } from './decoded-parts.ts';

/** What a decoding thread keeps between jobs. */
export interface DecodeTools {
  validatorOf(schema: typeof TraceBody | typeof BatchBody): Validator;
  /** Computes missing costs. */
  price(drafts: readonly TraceDraft[], job: DecodeJob): Promise<void>;
}

/** Decompresses, parses, maps, validates and prices a body, and packs its payloads. Throws a `Failure` if it is not valid. */
export async function decode(job: DecodeJob, tools: DecodeTools): Promise<DecodedReply> {
  const bytes = decompress(job);
  const bodyHash = job.hashPrefix === null ? null : hashOf(job.hashPrefix, bytes);
  const reply = { kind: 'decoded', bodyHash, rejected: '[]', signals: null } as const;
  if (job.kind === 'trace' || job.kind === 'batch') {
    const isOne = job.kind === 'trace';
    const { drafts, rejected } = isOne ? oneTrace(bytes, job, tools) : batch(bytes, job, tools);
    await tools.price(drafts, job);
    const parts = partsOf(drafts, null, { teamId: job.teamId, omit: new Set(job.omit) });
    return { ...reply, parts, rejected: JSON.stringify(rejected) };
  }
  const { calls, signals } = readCalls(signalsIn(bytes, job), job);
  const drafts = calls.map(({ draft }) => draft);
  await tools.price(drafts, job);
  const ids = calls.map((call) => call.ids);
  return { ...reply, parts: partsOf(drafts, ids, null), signals };
}

function decompress({ coding, bytes, bodyBytesMax }: DecodeJob): Buffer {
  const packed = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (coding === 'identity') return packed;
  try {
    const maxOutputLength = bodyBytesMax;
    return coding === 'gzip'
      ? gunzipSync(packed, { maxOutputLength })
      : zstdDecompressSync(packed, { maxOutputLength, params: zstdParams });
  } catch (error) {
    const isTooLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    if (isTooLarge) return fail('body_too_large');
    const say = `The body is not valid ${coding}, although its Content-Encoding is ${coding}.`;
    return fail('malformed_encoding', { say });
  }
}

/** A frame with a larger window would need more memory than the largest body. */
const zstdParams = { [constants.ZSTD_d_windowLogMax]: 25 };

export function hashOf(prefix: string, body: Uint8Array): string {
  return createHash('sha256').update(prefix).update(body).digest('base64url');
}

// --- JSON ---

const bodyBounds = { valuesMax: limits.bodyValuesMax, depthMax: limits.bodyDepthMax };

/** The text of a body that is valid UTF-8 and not empty. */
function textOf(body: Buffer): string {
  if (!isUtf8(body)) return fail('malformed_utf8');
  if (body.length === 0)
    return fail('malformed_json', { say: 'The body is empty; a JSON object was expected.' });
  return body.toString('utf8');
}

/** A `__proto__` key becomes an ordinary property, which nothing reads. */
export function jsonIn(body: Buffer): unknown {
  const text = textOf(body);
  try {
    return parseJson(text, bodyBounds);
  } catch (error) {
    if (error instanceof JsonOverBounds) {
      return fail('body_too_large', { say: `The body ${error.message}.` });
    }
    // The parser's own message quotes the text around the error, which may be part of a prompt.
    return fail('malformed_json');
  }
}

/** Fails if an exporter whose URL lacks the base path has sent the body. */
export function refuseOtlp(body: unknown, basePath: string): void {
  const isOtlp =
    typeof body === 'object' &&
    body !== null &&
    ('resourceSpans' in body || 'resourceLogs' in body);
  if (!isOtlp) return;
  const message = `must be a trace; OpenTelemetry data belongs to ${basePath}/v1/traces and ${basePath}/v1/logs`;
  fail('invalid_input', { errors: [{ field: 'body', message }] });
}

// --- Traces ---

interface Rejection {
  index: number;
  errors: ReturnType<typeof fieldErrors>;
}

interface Traces {
  drafts: TraceDraft[];
  rejected: readonly Rejection[];
}

function oneTrace(bytes: Buffer, { basePath }: DecodeJob, { validatorOf }: DecodeTools): Traces {
  const body = jsonIn(bytes);
  refuseOtlp(body, basePath);
  check(validatorOf(TraceBody), body);
  return { drafts: [draftTrace(body as TraceInput)], rejected: [] };
}

function check(validate: Validator, body: unknown): void {
  if (!validate(body)) fail('invalid_input', { errors: fieldErrors(validate.errors ?? []) });
}

/** Validates each item against the schema of a single trace. */
function batch(
  bytes: Buffer,
  { basePath, traceBytesMax }: DecodeJob,
  { validatorOf }: DecodeTools,
): Traces {
  const body = jsonIn(bytes);
  refuseOtlp(body, basePath);
  check(validatorOf(BatchBody), body);
  const isTrace = validatorOf(TraceBody);
  // No item can be too large if the whole body is not.
  const mayBeTooLarge = bytes.length > traceBytesMax;
  const drafts: TraceDraft[] = [];
  const rejected: Rejection[] = [];
  for (const [index, item] of (body as { traces: unknown[] }).traces.entries()) {
    if (!isTrace(item)) {
      rejected.push({ index, errors: fieldErrors(isTrace.errors ?? [], itemField) });
    } else if (mayBeTooLarge && Buffer.byteLength(JSON.stringify(item)) > traceBytesMax) {
      const message = `must be at most ${traceBytesMax} bytes of JSON`;
      rejected.push({ index, errors: [{ field: itemField, message }] });
    } else {
      drafts.push(draftTrace(item as TraceInput));
    }
  }
  if (drafts.length === 0) refuseAll(rejected);
  return { drafts, rejected };
}

/** The field name for errors that concern the item as a whole. */
const itemField = 'trace';

function refuseAll(rejected: readonly Rejection[]): never {
  const errors = rejected.flatMap(({ index, errors: own }) =>
    own.map(({ field, message }) => ({
      field: field === itemField ? `traces.${index}` : `traces.${index}.${field}`,
      message,
    })),
  );
  return fail('invalid_input', { errors });
}

// --- The forms of other tools ---

function signalsIn(bytes: Buffer, { kind, encoding }: DecodeJob): Signals {
  if (kind === 'litellm') return readLitellm(textOf(bytes), bodyBounds);
  const signal = kind as 'span' | 'log';
  try {
    return encoding === 'protobuf' ? readProtobuf(bytes, signal) : readJson(jsonIn(bytes), signal);
  } catch (error) {
    if (error instanceof MalformedProtobuf) {
      fail('malformed_request', { say: `The body is not valid OTLP protobuf: ${error.message}.` });
    }
    if (error instanceof MalformedOtlpJson) {
      fail('malformed_json', { say: `The body is not valid OTLP JSON: ${error.message}.` });
    }
    throw error;
  }
}
