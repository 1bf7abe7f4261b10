import { Type } from './schema-builders.ts';
import type { TSchema } from 'typebox';
import { protobufContentType } from './body-parser.ts';

/** OTLP has its own definition, so the OpenAPI document only names it. The decoders check the bodies. */
const anyProtobuf = Type.Unsafe({ openapi: { type: 'string', format: 'binary' } });
const request = 'An OTLP export request; see https://opentelemetry.io/docs/specs/otlp/.';

export const OtlpBody = Type.Unsafe<unknown>({
  content: {
    'application/json': { schema: Type.Unsafe({ description: request }) },
    [protobufContentType]: { schema: anyProtobuf },
  },
});

const payloads =
  'Standard logging payloads of LiteLLM: a list, one per line, or a single one; see https://docs.litellm.ai/docs/proxy/logging_spec.';

export const LitellmBody = Type.Unsafe<unknown>({
  content: {
    'application/json': { schema: Type.Unsafe({ description: payloads }) },
    'application/x-ndjson': { schema: Type.Unsafe({ openapi: { type: 'string' } }) },
  },
});

export const litellmReply = Type.Object(
  {
    stored: Type.Integer({ description: 'Calls that were stored.' }),
    duplicate: Type.Integer({ description: 'Calls that were stored before.' }),
    skipped: Type.Integer({ description: 'Payloads that are not model calls.' }),
    rejected: Type.Integer({ description: 'Calls that could not be stored.' }),
    reasons: Type.Array(Type.String(), { description: 'Why calls were rejected.' }),
  },
  { description: 'What became of the payloads.' },
);

const inBoth = (description: string, json: TSchema): TSchema =>
  Type.Unsafe({
    description,
    content: {
      'application/json': { schema: json },
      [protobufContentType]: { schema: anyProtobuf },
    },
  });

export const otlpReply = inBoth(
  'Every model call is stored, except those that `partialSuccess` says were rejected.',
  Type.Object({
    partialSuccess: Type.Optional(
      Type.Unsafe({ type: 'object', description: 'How many were rejected, and why.' }),
    ),
  }),
);

const Status = Type.Object({ code: Type.Integer(), message: Type.String() });
const status = (description: string): TSchema =>
  inBoth(`google.rpc.Status: ${description}`, Status);

export const otlpFailures = {
  400: status('malformed or invalid data.'),
  401: status('API key missing, unknown, expired or revoked.'),
  403: status('the API key does not have the required scope.'),
  413: status('the body is too large.'),
  415: status('neither application/x-protobuf nor application/json.'),
  429: status('too many failed attempts, or rate limit exceeded.'),
  503: status('overloaded, the store is not responding, or the disk is full.'),
};
