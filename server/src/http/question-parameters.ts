import { Type } from './schema-builders.ts';
import { boundRule, lastPattern, lastRule } from '../core/asked-range.ts';
import { filterFields, groupFields, orderedFields } from '../core/dimensions.ts';
import type { QueryField } from '../core/query.ts';
import { metadataPrefix } from '../core/question.ts';
import { recordNames } from '../core/record-fields.ts';
import { boundedNames, previewedNames, startName, traceFields } from '../core/trace-fields.ts';
import type { BoundedName } from '../core/trace-fields.ts';
import { limits } from '../limits.ts';
import { cursorPattern } from './cursors.ts';

/** The parameters of questions. See `parameters.ts` for `rule` and `openapi`. */
const plainCharacter = '[^\\u0000-\\u001f\\u007f-\\u009f]';

/** A parameter that may be repeated: any of its values. */
function anyOf(pattern: string, rule: string, description: string, items: object = {}) {
  return Type.Optional(
    Type.Unsafe<string | string[]>({
      type: ['string', 'array'],
      pattern,
      items: { type: 'string', pattern },
      maxItems: limits.filterValuesMax,
      rule,
      openapi: {
        type: 'array',
        items: { type: 'string', ...items },
        maxItems: limits.filterValuesMax,
      },
      description,
    }),
  );
}

function filterBy(field: QueryField) {
  if (field === 'status') {
    const values = ['success', 'error'];
    const rule = 'must be "success" or "error"';
    return anyOf('^(success|error)$', rule, `Only traces with this status.`, { enum: values });
  }
  const { labelCharsMax } = limits;
  return anyOf(
    `^${plainCharacter}{0,${labelCharsMax}}$`,
    `must have at most ${labelCharsMax} characters and no control characters`,
    `Only traces with this \`${field}\`. Repeated: with any of the values. Empty: traces with no \`${field}\`.`,
    { maxLength: labelCharsMax },
  );
}

const metadataFilter = anyOf(
  `^[^]{0,${limits.metadataValueCharsMax}}$`,
  `must have at most ${limits.metadataValueCharsMax} characters`,
  'Only traces whose metadata has this value under NAME, which stands for any name. Repeated: any of the values. Empty: traces without such an entry.',
  { maxLength: limits.metadataValueCharsMax },
);

function bound(description: string) {
  return Type.Optional(
    Type.String({
      check: { kind: 'bound' },
      rule: boundRule,
      description,
      examples: ['2026-11-04', '2026-11-04T09:00:00Z'],
    }),
  );
}

function rangeParameters(unit: string) {
  return {
    from: bound(
      `The first day in the time zone of the team, or an RFC 3339 time${unit}, included. By the time of the call: \`${startName}\`, or \`created_at\` if that was not sent.`,
    ),
    to: bound(
      `The last day, included, or an RFC 3339 time${unit}, excluded. Default with \`from\`: today.`,
    ),
    last: Type.Optional(
      Type.String({
        pattern: lastPattern,
        rule: lastRule,
        description:
          'Instead of `from` and `to`. `24h`: the last 24 whole hours and the current one. `7d`: the last seven days, today included.',
        examples: ['24h', '30d'],
      }),
    ),
  };
}

/** A value from a list. */
function oneOf<const T extends string>(values: readonly T[], description: string, rule?: string) {
  return Type.Optional(
    Type.Unsafe<T>({
      type: 'string',
      pattern: `^(${values.join('|')})$`,
      rule: rule ?? `must be one of ${values.map((value) => `"${value}"`).join(', ')}`,
      openapi: { type: 'string', enum: values },
      description,
    }),
  );
}

const filterParameters = {
  ...Object.fromEntries(filterFields.map((field) => [field, filterBy(field)])),
  [`${metadataPrefix}NAME`]: metadataFilter,
};

/** Names of metadata entries are chosen by callers. */
export const metadataPattern = {
  patternProperties: {
    [`^metadata\\.${plainCharacter}{1,${limits.metadataNameCharsMax}}$`]: metadataFilter,
  },
};

/** The parameters of every analytics endpoint. */
export const analyticsParameters = { ...rangeParameters(' (a whole hour)'), ...filterParameters };

/** The name of the parameter for the smallest value of a field. */
export function minimumOf(name: BoundedName): string {
  return `min_${name}`;
}

function minimum(name: BoundedName) {
  const isCount = traceFields[name].kind === 'count';
  return Type.Optional(
    Type.String({
      pattern: isCount ? '^[0-9]{1,9}$' : '^[0-9]{1,7}(\\.[0-9]{1,12})?$',
      rule: isCount
        ? 'must be an integer from 0 to 999999999'
        : 'must be a number such as 0.05, with at most 7 digits before the point and 12 after it',
      openapi: { type: isCount ? 'integer' : 'number', minimum: 0 },
      description: `Only traces whose \`${name}\` is at least this.`,
    }),
  );
}

/** Those of a list of traces. */
export const listParameters = {
  ...rangeParameters(''),
  ...filterParameters,
  ...Object.fromEntries(boundedNames.map((name) => [minimumOf(name), minimum(name)])),
  q: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: limits.searchTextCharsMax,
      rule: `must have 1 to ${limits.searchTextCharsMax} characters`,
      description: `Only traces with this text in ${previewedNames.map((name) => `\`${name}\``).join(', ')}. Upper and lower case differ.`,
    }),
  ),
  order: oneOf(
    [startName],
    `Lists the traces of one session or run in the order in which the calls began. Only with ${orderedFields.map((name) => `\`${name}\``).join(' or ')} alone.`,
  ),
  cursor: Type.Optional(
    Type.String({
      pattern: cursorPattern,
      rule: 'must be the next_cursor of a list with the same filters',
      description:
        'Continues a filtered list: the `next_cursor` of the page before, with the same filters.',
    }),
  ),
};

const groupName = `(${groupFields.join('|')})`;

/** The further parameters of `/analytics/query`. */
export const reportParameters = {
  group_by: Type.Optional(
    Type.String({
      pattern: `^(?!(\\w+),\\1$)${groupName}(,${groupName})?$`,
      rule: `must be one or two of ${groupFields.join(', ')}, separated by a comma`,
      description: `One or two of ${groupFields.map((name) => `\`${name}\``).join(', ')}, separated by a comma.`,
      examples: ['model', 'model,status'],
    }),
  ),
  interval: oneOf(
    ['hour', 'day', 'week', 'month'],
    'One row per interval in the time zone of the team. Weeks begin on Monday.',
  ),
  order: oneOf(
    recordNames.flatMap((name) => [name, `-${name}` as const]),
    'How groups are ranked, over the whole range: a measure, with `-` for descending. Default: `-total_cost_usd`.',
    `must be one of ${recordNames.join(', ')}, with - for descending`,
  ),
  fill: oneOf(['zero'], 'Adds rows with zeros for intervals without calls.'),
};
