import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  behind,
  hrefOf,
  isNarrowed,
  noQuestion,
  overviewHref,
  parseRoute,
  traceHref,
  tracesHref,
  usersHref,
} from '../src/route/route.ts';
import type { OverviewRoute, Route, TracesRoute, UsersRoute } from '../src/route/route.ts';
import {
  filterFields,
  onlyFilter,
  readFilters,
  withFilter,
  withoutFilter,
} from '../src/view/filters.ts';
import { intervalOf, lastDays, presets, rangeParameters, readRange } from '../src/view/range.ts';
import type { Range } from '../src/view/range.ts';
import { hostileTexts } from './support/hostile-text.ts';

const overview = (wishes: Partial<OverviewRoute> = {}): OverviewRoute => ({
  kind: 'overview',
  question: noQuestion,
  stack: 'model',
  split: 'feature_name',
  share: null,
  form: 'charts',
  measure: 'cost',
  uncosted: false,
  ...wishes,
});
const users = (wishes: Partial<UsersRoute> = {}): UsersRoute => ({
  kind: 'users',
  question: noQuestion,
  search: '',
  order: 'cost',
  ...wishes,
});
const traces = (wishes: Partial<TracesRoute> = {}): TracesRoute => ({
  kind: 'traces',
  question: noQuestion,
  page: 1,
  cursor: null,
  text: '',
  ...wishes,
});
const withRange = (range: Range) => ({ range, filters: {} });

test('an address is a view, and a view is an address', () => {
  const cases: [fragment: string, route: Route, href: string][] = [
    ['#/', overview(), overviewHref()],
    ['#/?last=30d', overview({ question: withRange(lastDays(30)) }), ''],
    ['#/?period=all', overview({ question: withRange({ kind: 'all' }) }), ''],
    [
      '#/?model=gpt-4o&model=claude&feature_name=&stack=environment&split=provider&share=calls&show=table&measure=errors&costs=missing',
      overview({
        question: { range: null, filters: { model: ['gpt-4o', 'claude'], feature_name: [''] } },
        stack: 'environment',
        split: 'provider',
        share: 'calls',
        form: 'table',
        measure: 'errors',
        uncosted: true,
      }),
      '',
    ],
    ['#/users', users(), usersHref()],
    [
      '#/users?period=last-month&search=a%26b&order=p95',
      users({
        question: withRange({ kind: 'month', which: 'last' }),
        search: 'a&b',
        order: 'p95',
      }),
      '',
    ],
    ['#/traces', traces(), tracesHref()],
    ['#/traces?page=7', traces({ page: 7 }), ''],
    [
      '#/traces?from=2026-11-14T09%3A00%3A00%2B01%3A00&to=2026-11-14T10%3A00%3A00%2B01%3A00&status=error&q=slow+down&cursor=abc',
      traces({
        question: {
          range: {
            kind: 'between',
            from: '2026-11-14T09:00:00+01:00',
            to: '2026-11-14T10:00:00+01:00',
          },
          filters: { status: ['error'] },
        },
        text: 'slow down',
        cursor: 'abc',
      }),
      '',
    ],
    ['#/traces/01a1', { kind: 'trace', id: '01a1' }, traceHref('01a1')],
    ['#/nowhere', { kind: 'unknown' }, ''],
  ];
  for (const [fragment, route, href] of cases) {
    assert.deepEqual(parseRoute(fragment), route, fragment);
    if (href !== '') assert.equal(href, fragment);
    if (route.kind === 'overview') assert.equal(overviewHref(route), fragment);
    if (route.kind === 'users') assert.equal(usersHref(route), fragment);
    if (route.kind === 'traces') assert.equal(tracesHref(route), fragment);
  }
});

test('what makes no sense in an address is ignored', () => {
  const plain: [fragment: string, route: Route][] = [
    ['', overview()],
    ['#', overview()],
    ['#/?', overview()],
    ['#/?last=7x&period=never&from=2026-02-30&to=2026-03-01&stack=user&show=3d', overview()],
    ['#/?from=2026-11-04', overview()],
    ['#/?from=2026-11-04&to=2026-11-03', overview()],
    ['#/?from=2026-11-04T00:00:00Z&to=2026-11-04T00:00:00Z', overview()],
    ['#/?status=maybe&unknown=1', overview()],
    ['#/traces?page=-1', traces()],
    ['#/traces?page=1e3', traces()],
    ['#/traces?cursor=', traces()],
    ['#/users?order=age', users()],
  ];
  for (const [fragment, route] of plain) assert.deepEqual(parseRoute(fragment), route, fragment);
});

test('every text in every filter comes back from an address as it was', () => {
  for (const field of filterFields.filter((name) => name !== 'status')) {
    for (const text of [
      ...hostileTexts.map((one) => one.toWellFormed()),
      '',
      ' ',
      '&=#?%+',
      'ä/ö',
    ]) {
      const question = { range: null, filters: onlyFilter({}, field, text) };
      assert.deepEqual(parseRoute(tracesHref({ question })), traces({ question }), text);
      const route = parseRoute(hrefOf(overview(), question));
      assert.deepEqual(route, overview({ question }), text);
    }
  }
});

test('filters are added once, narrowed to one value, and removed one by one', () => {
  const two = withFilter(withFilter({}, 'model', 'a'), 'model', 'b');
  assert.deepEqual(two, { model: ['a', 'b'] });
  assert.equal(withFilter(two, 'model', 'b'), two);
  assert.deepEqual(withoutFilter(two, 'model', 'a'), { model: ['b'] });
  assert.deepEqual(withoutFilter(withoutFilter(two, 'model', 'a'), 'model', 'b'), {});
  assert.deepEqual(onlyFilter(two, 'model', null), { model: [''] });
  assert.deepEqual(onlyFilter(two, 'status', 'error'), { model: ['a', 'b'], status: ['error'] });
  const many = new URLSearchParams(Array.from({ length: 150 }, (_, i) => ['model', `${i}`]));
  assert.equal(readFilters(many).model?.length, 100, 'as many as the API accepts');
  assert.deepEqual(readFilters(new URLSearchParams('model=a&model=a')), { model: ['a'] });
});

test('the traces behind a number have its range, the filters of the view, and its own', () => {
  const route = overview({ question: { range: null, filters: { model: ['a', 'b'] } } });
  assert.deepEqual(behind(route, { status: 'error' }), {
    range: lastDays(7),
    filters: { model: ['a', 'b'], status: ['error'] },
  });
  assert.deepEqual(behind(route, { model: 'a', feature_name: null }).filters, {
    model: ['a'],
    feature_name: [''],
  });
});

test('only a range, a filter or a search makes a list a search', () => {
  const cases: [fragment: string, isSearch: boolean][] = [
    ['#/traces', false],
    ['#/traces?page=3', false],
    ['#/traces?period=all', false],
    ['#/traces?last=7d', true],
    ['#/traces?feature_name=', true],
    ['#/traces?q=x', true],
  ];
  for (const [fragment, isSearch] of cases)
    assert.equal(isNarrowed(parseRoute(fragment) as TracesRoute), isSearch, fragment);
});

test('a new question starts at the first page and keeps the rest of the view', () => {
  const question = { range: lastDays(30), filters: {} };
  assert.equal(
    hrefOf(traces({ page: 4, cursor: 'x', text: 'q' }), question),
    '#/traces?last=30d&q=q',
  );
  assert.equal(hrefOf(users({ order: 'p95' }), question), '#/users?last=30d&order=p95');
  assert.equal(hrefOf(overview({ form: 'table' }), question), '#/?last=30d&show=table');
});

test('every range of the picker can be asked for, months by the calendar of the team', () => {
  const nowMs = Date.parse('2026-03-31T23:30:00Z');
  const cases: [zone: string, asked: Record<string, string>[]][] = [
    [
      'UTC',
      [
        { last: '24h' },
        { last: '7d' },
        { last: '30d' },
        { last: '90d' },
        { from: '2026-03-01', to: '2026-03-31' },
        { from: '2026-02-01', to: '2026-02-28' },
        {},
      ],
    ],
    [
      'Asia/Kolkata',
      [
        { last: '24h' },
        { last: '7d' },
        { last: '30d' },
        { last: '90d' },
        { from: '2026-04-01', to: '2026-04-01' },
        { from: '2026-03-01', to: '2026-03-31' },
        {},
      ],
    ],
  ];
  for (const [zone, asked] of cases) {
    assert.deepEqual(
      presets.map(({ range }) => rangeParameters(range, zone, nowMs)),
      asked,
      zone,
    );
  }
});

test('an interval gives neither one bar nor hundreds', () => {
  const cases: [query: string, interval: string | null][] = [
    ['last=1h', 'hour'],
    ['last=24h', 'hour'],
    ['last=3d', 'hour'],
    ['last=4d', 'day'],
    ['last=90d', 'day'],
    ['last=93d', 'week'],
    ['last=366d', 'week'],
    ['last=367d', 'month'],
    ['last=9999d', 'month'],
    ['period=this-month', 'day'],
    ['period=all', null],
    ['from=2026-11-14&to=2026-11-14', 'hour'],
    ['from=2026-01-01&to=2026-12-31', 'week'],
    ['from=2020-01-01&to=2026-12-31', 'month'],
    ['from=2026-11-14T09:00:00Z&to=2026-11-14T10:00:00Z', 'hour'],
  ];
  for (const [query, interval] of cases) {
    const range = readRange(new URLSearchParams(query));
    assert.ok(range !== null, query);
    assert.equal(intervalOf(range), interval, query);
  }
});
