import { filterPairs, hasFilters, noFilters, readFilters } from '../view/filters.ts';
import type { FilterField, Filters } from '../view/filters.ts';
import { allTime, isSameRange, lastDays, rangePairs, readRange } from '../view/range.ts';
import type { Range } from '../view/range.ts';

/** What a view is about: it stays the same when the user goes from one view to another. */
export interface Question {
  /** Null for the default of the view. */
  range: Range | null;
  filters: Filters;
}

/** What the charts are stacked by, and what the second table of the overview lists. */
export const stackFields = ['model', 'feature_name', 'environment'] as const;
export const splitFields = ['feature_name', 'environment', 'provider', 'error_type'] as const;
export type StackField = (typeof stackFields)[number];
export type SplitField = (typeof splitFields)[number];

export const measureNames = ['cost', 'calls', 'errors'] as const;
export type MeasureName = (typeof measureNames)[number];

export const userOrders = ['cost', 'calls', 'errors', 'p95'] as const;
export type UserOrder = (typeof userOrders)[number];

export interface OverviewRoute {
  kind: 'overview';
  question: Question;
  stack: StackField;
  split: SplitField;
  /** Null: by cost if any call has one. */
  share: 'cost' | 'calls' | null;
  form: 'charts' | 'table';
  /** Which of the stacked charts the table shows. */
  measure: MeasureName;
  /** Whether the models of calls without a cost are listed. */
  uncosted: boolean;
}

export interface UsersRoute {
  kind: 'users';
  question: Question;
  search: string;
  order: UserOrder;
}

export interface TracesRoute {
  kind: 'traces';
  question: Question;
  /** Without a range, filters or search, the list has numbered pages. */
  page: number;
  /** Otherwise each page says where the next one begins. */
  cursor: string | null;
  /** Text in the input, output or error message. */
  text: string;
}

/** The current view. It is stored only in the fragment, which is never sent to a server. */
export type Route =
  | OverviewRoute
  | UsersRoute
  | TracesRoute
  | { kind: 'trace'; id: string }
  | { kind: 'unknown' };

/** Everything, unless the address says otherwise. */
export const noQuestion: Question = { range: null, filters: noFilters };

const overviewDefaults = {
  question: noQuestion,
  stack: 'model',
  split: 'feature_name',
  share: null,
  form: 'charts',
  measure: 'cost',
  uncosted: false,
} as const;
const usersDefaults = { question: noQuestion, search: '', order: 'cost' } as const;
const tracesDefaults = { question: noQuestion, page: 1, cursor: null, text: '' } as const;

export function parseRoute(fragment: string): Route {
  const at = fragment.indexOf('?');
  const path = (at === -1 ? fragment : fragment.slice(0, at)).replace(/^#/, '');
  const query = new URLSearchParams(at === -1 ? '' : fragment.slice(at + 1));
  const question = { range: readRange(query), filters: readFilters(query) };
  if (path === '' || path === '/') return overviewOf(question, query);
  if (path === '/users') {
    const order = oneOf(userOrders, query.get('order')) ?? usersDefaults.order;
    return { kind: 'users', question, search: query.get('search') ?? '', order };
  }
  if (path === '/traces') return tracesOf(question, query);
  const id = /^\/traces\/([^/]+)$/.exec(path)?.[1];
  return id === undefined ? { kind: 'unknown' } : { kind: 'trace', id: decode(id) };
}

function overviewOf(question: Question, query: URLSearchParams): OverviewRoute {
  return {
    kind: 'overview',
    question,
    stack: oneOf(stackFields, query.get('stack')) ?? overviewDefaults.stack,
    split: oneOf(splitFields, query.get('split')) ?? overviewDefaults.split,
    share: oneOf(['cost', 'calls'], query.get('share')) ?? overviewDefaults.share,
    form: oneOf(['charts', 'table'], query.get('show')) ?? overviewDefaults.form,
    measure: oneOf(measureNames, query.get('measure')) ?? overviewDefaults.measure,
    uncosted: query.get('costs') === 'missing',
  };
}

function tracesOf(question: Question, query: URLSearchParams): TracesRoute {
  const page = query.get('page') ?? '';
  return {
    kind: 'traces',
    question,
    page: /^[1-9][0-9]{0,8}$/.test(page) ? Number(page) : 1,
    cursor: query.get('cursor') || null,
    text: query.get('q') ?? '',
  };
}

function oneOf<T extends string>(values: readonly T[], text: string | null): T | null {
  return values.find((value) => value === text) ?? null;
}

export const homeHref = '#/';

type Wishes<R> = Partial<Omit<R, 'kind'>>;

export function overviewHref(wishes: Wishes<OverviewRoute> = {}): string {
  const { question, stack, split, share, form, measure, uncosted } = {
    ...overviewDefaults,
    ...wishes,
  };
  return href('#/', question, [
    ['stack', stack === overviewDefaults.stack ? '' : stack],
    ['split', split === overviewDefaults.split ? '' : split],
    ['share', share ?? ''],
    ['show', form === overviewDefaults.form ? '' : form],
    ['measure', measure === overviewDefaults.measure ? '' : measure],
    ['costs', uncosted ? 'missing' : ''],
  ]);
}

export function usersHref(wishes: Wishes<UsersRoute> = {}): string {
  const { question, search, order } = { ...usersDefaults, ...wishes };
  return href('#/users', question, [
    ['search', search],
    ['order', order === usersDefaults.order ? '' : order],
  ]);
}

export function tracesHref(wishes: Wishes<TracesRoute> = {}): string {
  const { question, page, cursor, text } = { ...tracesDefaults, ...wishes };
  return href('#/traces', question, [
    ['q', text],
    ['page', page === 1 ? '' : String(page)],
    ['cursor', cursor ?? ''],
  ]);
}

/** The first page of this question. */
export function tracesRoute(question: Question): TracesRoute {
  return { kind: 'traces', ...tracesDefaults, question };
}

export function traceHref(id: string): string {
  return `#/traces/${encodeURIComponent(id)}`;
}

/** The same view of another question, from its beginning. */
export function hrefOf(route: Route, question: Question): string {
  switch (route.kind) {
    case 'overview':
      return overviewHref({ ...route, question });
    case 'users':
      return usersHref({ ...route, question });
    case 'traces':
      return tracesHref({ text: route.text, question });
    case 'trace':
    case 'unknown':
      return overviewHref({ question });
  }
}

/** A parameter without a text is left out. An empty filter is one that means "not set", so it stays. */
function href(
  path: string,
  { range, filters }: Question,
  others: readonly (readonly [string, string])[],
): string {
  const pairs = [
    ...(range === null ? [] : rangePairs(range)),
    ...filterPairs(filters),
    ...others.filter(([, text]) => text !== ''),
  ];
  const query = new URLSearchParams(pairs.map(([name, text]) => [name, text])).toString();
  return query === '' ? path : `${path}?${query}`;
}

/** The last seven days, and for the list of traces all of them. */
export function rangeOf(route: { kind: Route['kind']; question: Question }): Range {
  return route.question.range ?? (route.kind === 'traces' ? allTime : lastDays(7));
}

/** Whether the list shows only some of the traces. */
export function isNarrowed({ question, text }: TracesRoute): boolean {
  const hasRange = question.range !== null && !isSameRange(question.range, allTime);
  return hasRange || hasFilters(question.filters) || text !== '';
}

/** What the second table of the overview is about: the types of errors are those of failed calls. */
export function splitRoute(route: OverviewRoute): OverviewRoute {
  const { question, split } = route;
  if (split !== 'error_type' || question.filters.status !== undefined) return route;
  return {
    ...route,
    question: { ...question, filters: { ...question.filters, status: ['error'] } },
  };
}

/** The question about the traces behind a number of another view. */
export function behind(
  route: { kind: Route['kind']; question: Question },
  more: Partial<Record<FilterField, string | null>> = {},
  range: Range = rangeOf(route),
): Question {
  const added = Object.entries(more).map(([field, value]) => [field, [value ?? '']]);
  return { range, filters: { ...route.question.filters, ...Object.fromEntries(added) } };
}

export function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
