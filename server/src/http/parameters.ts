import { Type } from './schema-builders.ts';
import { payloadNames, previewedNames } from '../core/trace-fields.ts';
import type { PayloadName } from '../core/trace-fields.ts';
import { limits } from '../limits.ts';
import {
  analyticsParameters,
  listParameters,
  metadataPattern,
  reportParameters,
} from './question-parameters.ts';

/**
 * Query parameters, path parameters and headers. Query values arrive as strings; `openapi` is how the document shows them, and
 * `rule` is what an error says about another value.
 */

/** A positive integer with at most nine digits. */
function upToNineDigits(byDefault: number, description: string, hint = '') {
  return Type.String({
    pattern: '^[1-9][0-9]{0,8}$',
    rule: `must be a positive integer with at most 9 digits${hint}`,
    openapi: { type: 'integer', minimum: 1, maximum: 999_999_999, default: byDefault },
    description,
  });
}

/** An integer from 1 to `max`, which must be a power of ten. */
function upTo(max: number, description: string) {
  return Type.String({
    pattern: `^([1-9][0-9]{0,${String(max).length - 2}}|${max})$`,
    rule: `must be an integer from 1 to ${max}`,
    openapi: { type: 'integer', minimum: 1, maximum: max },
    description,
  });
}

const listed = (names: readonly PayloadName[]): string =>
  names.map((name) => `\`${name}\``).join(', ');
const quotedPayloads = payloadNames.map((name) => `"${name}"`).join(', ');
const payload = `(${payloadNames.join('|')})`;
const omit = Type.Optional(
  Type.String({
    pattern: `^(?!.*${payload}.*\\1)${payload}(,${payload})*$`,
    rule: `must be one or more of ${quotedPayloads}, each at most once, separated by commas`,
    description: `Payloads to leave out of the reply: one or more of ${listed(payloadNames)}, each at most once, separated by commas.`,
    examples: [payloadNames.join(',')],
  }),
);

/** The payloads of a query such as `omit=input,output`, which the schema has validated. */
export function omittedPayloads(list: string | undefined): ReadonlySet<PayloadName> {
  return new Set((list?.split(',') ?? []) as PayloadName[]);
}

const lowered = `over ${limits.pageRowsMax} are lowered to ${limits.pageRowsMax}`;
export const PageQuery = Type.Object(
  {
    page: Type.Optional(
      upToNineDigits(1, 'Page number. A page past the end is empty. Not with a filter.'),
    ),
    limit: Type.Optional(
      upToNineDigits(
        limits.pageRowsDefault,
        `Traces per page. Values ${lowered}.`,
        ` (values ${lowered})`,
      ),
    ),
    omit,
    preview_chars: Type.Optional(
      upTo(
        limits.previewCharsMax,
        `Shortens ${listed(previewedNames)} to this many characters, for lists that show a preview.`,
      ),
    ),
    ...listParameters,
  },
  metadataPattern,
);

export const AnalyticsQuery = Type.Object(analyticsParameters, metadataPattern);

const groupLimit = 'Maximum number of records to return.';
export const GroupQuery = Type.Object(
  {
    ...analyticsParameters,
    limit: Type.Optional(upTo(limits.groupRowsMax, `${groupLimit} By default, all are returned.`)),
  },
  metadataPattern,
);

/** For lists that may be long. */
export const CutGroupQuery = Type.Object(
  {
    ...analyticsParameters,
    limit: Type.Optional(
      upTo(limits.groupRowsMax, `${groupLimit} Default: ${limits.groupRowsDefault}.`),
    ),
  },
  metadataPattern,
);

export const ReportQuery = Type.Object(
  {
    ...analyticsParameters,
    ...reportParameters,
    limit: Type.Optional(
      upTo(
        limits.groupRowsMax,
        `Number of groups, ranked over the whole range; the others are added up in \`other\`. Default: ${limits.groupRowsDefault}.`,
      ),
    ),
  },
  metadataPattern,
);

const priceMissing = Type.Optional(
  Type.String({
    pattern: '^true$',
    rule: 'must be true',
    openapi: { type: 'boolean', enum: [true] },
    description:
      'Computes the cost of each trace that has none from its tokens, as `--price-missing-costs` does for all requests.',
  }),
);

export const PostTraceQuery = Type.Object({ price_missing_costs: priceMissing });

/** A batch may leave payloads out of its reply. */
export const PostBatchQuery = Type.Object({ omit, price_missing_costs: priceMissing });

/** Whether a POST asks for missing costs. Bodies are decoded before the query is validated, so it may be anything. */
export function asksForCosts(query: unknown): boolean {
  const { price_missing_costs: asked } = query as Record<string, unknown>;
  return asked === 'true';
}

/** The value is checked in `idempotency.ts`, since Fastify's message would name the header in lower case. */
export const IdempotencyHeaders = Type.Object({
  'idempotency-key': Type.Optional(
    Type.Unsafe<string>({
      openapi: { type: 'string', minLength: 1, maxLength: limits.idempotencyKeyCharsMax },
      description:
        'Makes retries safe: a request with the same key and body within 24 hours stores nothing and gets the first reply again, ' +
        'with the header `Idempotent-Replayed: true`. The same key with a different body or path gets a 422.',
    }),
  ),
});

export const TraceParams = Type.Object({
  trace_id: Type.String({ description: "The trace's `id`." }),
});
