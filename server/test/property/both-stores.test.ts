import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { moment } from '../model/arbitraries.ts';
import { makePostgres } from '../support/postgres.ts';
import { manualClock, startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';
import { asked, noise } from './random-requests.ts';
import type { Asked, Caller } from './random-requests.ts';
import { Twins } from './twins.ts';
import type { Reply } from './twins.ts';

/** A server that speaks otherwise than we do: what it is set to must not show in any reply. */
const postgres = makePostgres({
  timezone: 'Asia/Kathmandu',
  datestyle: 'SQL, DMY',
  bytea_output: 'escape',
});
const clock = manualClock(1);
let services: readonly TestService[] = [];

before(async () => {
  await postgres.start();
  const flags = { 'trust-proxy': '127.0.0.1' };
  const url = await postgres.createDatabase(
    `template template0 locale_provider icu icu_locale 'en-US'`,
  );
  const onFile = await startTestService({ clock, flags });
  services = [onFile, await startTestService({ clock, flags: { ...flags, database: url } })];
  assert.deepEqual(
    services.map(({ store }) => store),
    ['sqlite', 'postgres'],
  );
});
after(async () => {
  for (const service of services) await service.stop();
  await postgres.stop();
});

/** A new request, or an earlier one again, at any moment. */
const step = fc.record({
  at: moment,
  what: fc.oneof(
    { weight: 6, arbitrary: asked.map((request) => ({ kind: 'new' as const, request })) },
    { weight: 1, arbitrary: fc.nat().map((nth) => ({ kind: 'again' as const, nth })) },
  ),
});

const get = (caller: Caller, path: string): Asked => ({
  caller,
  method: 'GET',
  path,
  headers: {},
  body: null,
});
const analytics = ['overview', 'by-model', 'by-feature', 'daily'].map((n) => `/analytics/${n}`);
/** The reads at the end of each conversation. */
const lastReads = (['full', 'stranger'] as const).flatMap((caller) =>
  ['/traces?limit=100', ...analytics].map((path) => get(caller, path)),
);

const runsWanted = 40;
/** Rare kinds of replies may be missing from one round of conversations. */
const roundsMax = 5;

test(`SQLite and PostgreSQL give byte-equal replies in ${runsWanted} random conversations`, async (t) => {
  const seen = new Map<string, number>();
  const unseen = () => expected.filter((name) => !seen.has(name));
  const count = (name: string): void => void seen.set(name, (seen.get(name) ?? 0) + 1);
  let rounds = 0;
  do {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 3, maxLength: 12 }),
        moment,
        async (steps, readAt) => {
          const twins = new Twins(services);
          const sent: Asked[] = [];
          for (const { at, what } of steps) {
            const request = what.kind === 'new' ? what.request : sent[what.nth % sent.length];
            if (!request) continue;
            sent.push(request);
            clock.set(at);
            for (const name of namesOf(request, await twins.ask(request))) count(name);
          }
          clock.set(readAt);
          for (const question of lastReads) {
            assert.equal((await twins.ask(question)).status, 200, question.path);
          }
        },
      ),
      { numRuns: runsWanted },
    );
  } while (unseen().length > 0 && ++rounds < roundsMax);
  const counts = Object.fromEntries(expected.map((name) => [name, seen.get(name) ?? 0]));
  t.diagnostic(JSON.stringify(counts));
  assert.deepEqual(unseen(), [], 'these were never seen');
});

/** What the conversations must have been about. */
const expected = [
  'POST /traces 201',
  'POST /traces 422',
  'POST /traces/batch 201',
  'POST /traces/batch 422',
  'GET /traces 200',
  'GET /traces 422',
  'GET /traces/{id} 200',
  'GET /traces/{id} 404',
  ...analytics.map((path) => `GET ${path} 200`),
  'replayed',
  'idempotency_key_reused',
  'key_missing',
  'key_unknown',
  'key_revoked',
  'key_expired',
  'scope_missing',
  'malformed_json',
  'malformed_encoding',
  'body_too_large',
  'unsupported_media_type',
  'route_not_found',
  'method_not_allowed',
];

function namesOf({ method, path }: Asked, { status, headers, body }: Reply): string[] {
  const route = path.replace(/\?.*/, '').replace(/^\/traces\/(?!batch).+/, '/traces/{id}');
  const code = /"code":"(\w+)"/.exec(status >= 400 ? body : '')?.[1];
  return [
    `${method} ${route} ${status}`,
    ...(code === undefined ? [] : [code]),
    ...(headers.includes('idempotent-replayed: true') ? ['replayed'] : []),
  ];
}

test('a page that is too large for one piece is the same text in the same frame', async () => {
  // Stored, the first is more bytes than characters, and the second far fewer.
  for (const [input, count, limits] of [
    [noise(130_000), 10, { 4: 'whole', 5: 'whole', 10: 'streamed' }],
    ['short and often '.repeat(14_000), 6, { 4: 'whole', 6: 'streamed' }],
  ] as const) {
    const twins = new Twins(services);
    const traces = Array.from({ length: count }, (_, i) => ({ model: `m${i}`, input }));
    const stored = await twins.ask({
      caller: 'full',
      method: 'POST',
      path: '/traces/batch?omit=input',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ traces }),
    });
    assert.equal(stored.status, 201);
    for (const [limit, frame] of Object.entries(limits)) {
      const question = get('full', `/traces?limit=${limit}`);
      const { headers } = await twins.ask(question);
      const isStreamed = headers.includes('transfer-encoding: chunked');
      assert.equal(isStreamed, frame === 'streamed', `${limit} of ${count}`);
      await twins.ask({ ...question, method: 'HEAD' });
    }
    await twins.ask(get('full', '/traces?limit=100&omit=input'));
  }
});
