import type { AnalyticsFilter } from '../../../client/src/reading.ts';

/** The fields that a question can be narrowed to, by the names of the API's parameters, in the order in which chips are shown. */
export const filterNames = {
  model: 'Model',
  feature_name: 'Feature',
  user_identifier: 'User',
  environment: 'Environment',
  provider: 'Provider',
  status: 'Status',
  error_type: 'Error type',
  session_id: 'Session',
  run_id: 'Run',
} as const;

export type FilterField = keyof typeof filterNames;
export const filterFields = Object.keys(filterNames) as readonly FilterField[];

/** Any of the values of each field. An empty value means "not set". */
export type Filters = Readonly<Partial<Record<FilterField, readonly string[]>>>;

export const noFilters: Filters = {};

/** The API accepts this many values of one field. */
const valuesMax = 100;

export function readFilters(query: URLSearchParams): Filters {
  const entries = filterFields.flatMap((field) => {
    const sent = [...new Set(query.getAll(field))];
    const values = (field === 'status' ? sent.filter(isStatus) : sent).slice(0, valuesMax);
    return values.length === 0 ? [] : [[field, values] as const];
  });
  return Object.fromEntries(entries);
}

function isStatus(value: string): boolean {
  return value === 'success' || value === 'error';
}

export function filterPairs(filters: Filters): [FilterField, string][] {
  return filterFields.flatMap((field) =>
    (filters[field] ?? []).map((value): [FilterField, string] => [field, value]),
  );
}

export function hasFilters(filters: Filters): boolean {
  return filterPairs(filters).length > 0;
}

/** As the API takes them. */
export function criteriaOf(filters: Filters): AnalyticsFilter {
  return filters as AnalyticsFilter;
}

/** One more value of a field. */
export function withFilter(filters: Filters, field: FilterField, value: string): Filters {
  const known = filters[field] ?? [];
  if (known.includes(value) || known.length >= valuesMax) return filters;
  return { ...filters, [field]: [...known, value] };
}

/** Only this value of a field: what a click on a name in a table asks for. Null is a trace without a value. */
export function onlyFilter(filters: Filters, field: FilterField, value: string | null): Filters {
  return { ...filters, [field]: [value ?? ''] };
}

export function withoutFilter(filters: Filters, field: FilterField, value: string): Filters {
  const left = (filters[field] ?? []).filter((one) => one !== value);
  const { [field]: _removed, ...others } = filters;
  return left.length === 0 ? others : { ...others, [field]: left };
}

/** As it is shown: `gpt-4o`, or `not set`. */
export function filterValueText(field: FilterField, value: string): string {
  if (field === 'status') return value === 'error' ? 'Error' : 'Success';
  return value === '' ? notSet : value;
}

/** The name of the group of traces without a value. */
export const notSet = 'not set';
