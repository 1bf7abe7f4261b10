import Type from 'typebox';
import { payloadNames } from '../core/trace-fields.ts';
import { limits } from '../limits.ts';

/** Query parameters, path parameters and headers. */
const positiveInteger = '^[1-9][0-9]{0,8}$';
export const groupLimit = upTo(limits.groupRowsMax);
const previewChars = upTo(limits.previewCharsMax);

/** A pattern that matches the integers from 1 to `max`, which must be a power of ten. */
function upTo(max: number): string {
  return `^([1-9][0-9]{0,${String(max).length - 2}}|${max})$`;
}

const payloadList = payloadNames.map((name) => `\`${name}\``).join(', ');
const payload = `(${payloadNames.join('|')})`;
const omit = Type.String({
  pattern: `^(?!.*${payload}.*\\1)${payload}(,${payload})*$`,
  description: `Payloads to leave out of the reply: one or more of ${payloadList}, each at most once, separated by commas.`,
  examples: [payloadNames.join(',')],
});

/** Query values arrive as strings. `openapi` is how the document shows them. */
export const PageQuery = Type.Object({
  page: Type.Optional(
    Type.String({
      pattern: positiveInteger,
      openapi: { type: 'integer', minimum: 1, maximum: 999_999_999, default: 1 },
      description: 'Page number. A page past the end is empty.',
    }),
  ),
  limit: Type.Optional(
    Type.String({
      pattern: positiveInteger,
      openapi: {
        type: 'integer',
        minimum: 1,
        maximum: 999_999_999,
        default: limits.pageRowsDefault,
      },
      description: `Traces per page. Values over ${limits.pageRowsMax} are lowered to ${limits.pageRowsMax}.`,
    }),
  ),
  omit: Type.Optional(omit),
  preview_chars: Type.Optional(
    Type.String({
      pattern: previewChars,
      openapi: { type: 'integer', minimum: 1, maximum: limits.previewCharsMax },
      description: `Shortens ${payloadList} to their first characters, for lists that show a preview.`,
    }),
  ),
});

/** Without a limit the whole list is returned. */
export const GroupQuery = Type.Object({
  limit: Type.Optional(
    Type.String({
      pattern: groupLimit,
      openapi: { type: 'integer', minimum: 1, maximum: limits.groupRowsMax },
      description: 'Return only the first records of the list, such as the 100 most used names.',
    }),
  ),
});

/** A batch may leave payloads out of its reply. */
export const OmitQuery = Type.Object({ omit: Type.Optional(omit) });

/** The value is checked in `idempotency.ts`, since Fastify's message would name the header in lower case. */
export const IdempotencyHeaders = Type.Object({
  'idempotency-key': Type.Optional(
    Type.Unsafe<string>({
      openapi: { type: 'string', minLength: 1, maxLength: limits.idempotencyKeyCharsMax },
      description:
        'Makes retries safe: a request with the same key and body within 24 hours stores nothing and gets the first reply again, ' +
        'with the header `Idempotent-Replayed: true`. The same key with a different body gets a 422.',
    }),
  ),
});

export const TraceParams = Type.Object({
  trace_id: Type.String({ description: "The trace's `id`." }),
});
