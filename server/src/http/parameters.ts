import Type from 'typebox';
import { payloadNames } from '../core/trace-fields.ts';
import { limits } from '../limits.ts';

/** What requests carry beside their bodies: parameters of the query and the path, and headers. */
const positiveInteger = '^[1-9][0-9]{0,8}$';
export const groupLimit = upTo(limits.groupRowsMax);
const previewChars = upTo(limits.previewCharsMax);

/** A pattern of the integers from 1 to a power of ten. */
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

/** Query values are texts. `openapi` is how the document shows them. */
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
      description: `Traces a page; over ${limits.pageRowsMax}, ${limits.pageRowsMax} is used.`,
    }),
  ),
  omit: Type.Optional(omit),
  preview_chars: Type.Optional(
    Type.String({
      pattern: previewChars,
      openapi: { type: 'integer', minimum: 1, maximum: limits.previewCharsMax },
      description: `Cuts ${payloadList} to that many characters, for lists that show how each begins.`,
    }),
  ),
});

/** Lists of names are whole unless a limit is given. */
export const GroupQuery = Type.Object({
  limit: Type.Optional(
    Type.String({
      pattern: groupLimit,
      openapi: { type: 'integer', minimum: 1, maximum: limits.groupRowsMax },
      description: 'Only the first records of the list, such as the 100 most used names.',
    }),
  ),
});

/** A batch may leave payloads out of its reply. */
export const OmitQuery = Type.Object({ omit: Type.Optional(omit) });

/** The value is checked with the request, since Fastify's own words would not name the header as it is written. */
export const IdempotencyHeaders = Type.Object({
  'idempotency-key': Type.Optional(
    Type.Unsafe<string>({
      openapi: { type: 'string', minLength: 1, maxLength: limits.idempotencyKeyCharsMax },
      description:
        'Makes a retry safe: the same key and body within 24 hours get the first reply again, with the header ' +
        '`Idempotent-Replayed: true`, and nothing is stored. With another body: 422.',
    }),
  ),
});

export const TraceParams = Type.Object({
  trace_id: Type.String({ description: "The trace's `id`." }),
});
