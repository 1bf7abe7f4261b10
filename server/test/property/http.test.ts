import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { payloadNames } from '../../src/core/trace-fields.ts';
import type { PayloadName } from '../../src/core/trace-fields.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { invalidItem, moment, maybeIdempotencyKey, sentTrace } from '../model/arbitraries.ts';
import type { InvalidItem } from '../model/arbitraries.ts';
import { IdempotencyModel } from '../model/idempotency-model.ts';
import { TeamModel } from '../model/team-model.ts';
import type { Expected, Sent } from '../model/team-model.ts';
import { manualClock, startTestService } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';
import { testStore } from '../support/store-place.ts';

const clock = manualClock(1);
let service: TestService;
let runs = 0;

before(async () => {
  service = await startTestService({ clock });
});
after(() => service.stop());

/** A team, what it should hold, and the first answers to its requests with a key. */
type Actor = KeyHolder & { model: TeamModel; idempotency: IdempotencyModel<Answer> };

type Item = { kind: 'good'; body: Sent } | ({ kind: 'bad' } & InvalidItem);

/** One POST, as it can be sent again. */
interface Request {
  path: '/traces' | '/traces/batch';
  items: readonly Item[];
  key: string | null;
  isPacked: boolean;
}

const goodItem = sentTrace.map((body): Item => ({ kind: 'good', body }));
const badItem = invalidItem.map((bad): Item => ({ kind: 'bad', ...bad }));
const sending = { key: maybeIdempotencyKey, isPacked: fc.boolean() };
const single = fc.record<Request>({
  path: fc.constant('/traces'),
  items: fc.tuple(goodItem),
  ...sending,
});
const anyItem = fc.oneof({ weight: 3, arbitrary: goodItem }, { weight: 1, arbitrary: badItem });
const batch = fc.record<Request>({
  path: fc.constant('/traces/batch'),
  items: fc.oneof(
    { weight: 4, arbitrary: fc.array(anyItem, { minLength: 1, maxLength: 4 }) },
    { weight: 1, arbitrary: fc.array(badItem, { minLength: 1, maxLength: 2 }) },
  ),
  ...sending,
});

const team = fc.nat({ max: 1 });
const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('post' as const),
      at: moment,
      team,
      request: fc.oneof({ weight: 2, arbitrary: single }, { weight: 1, arbitrary: batch }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('again' as const), at: moment, team, nth: fc.nat() }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('page' as const),
      team,
      page: fc.integer({ min: 1, max: 4 }),
      limit: fc.integer({ min: 1, max: 150 }),
      omit: fc.shuffledSubarray([...payloadNames]),
    }),
  },
);

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

const at = Date.UTC(2026, 10, 4) * 1000;

/** Tried before the random ones: of few of those it may be that none sends a request again in time. */
const sentAgain: Step[] = [
  {
    kind: 'post',
    at,
    team: 0,
    request: {
      path: '/traces',
      items: [{ kind: 'good', body: { model: 'm' } }],
      key: 'k1',
      isPacked: false,
    },
  },
  { kind: 'again', at: at + 1, team: 0, nth: 0 },
];

/** The store tests run longer random histories. */
const runsWanted = testStore === 'sqlite' ? 80 : 40;
const seen = { single: 0, batch: 0, none: 0, again: 0, reused: 0 };

test(`the API answers as the plain model does, and verify is clean, for ${runsWanted.toLocaleString('en-US')} random conversations`, async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 10 }),
      moment,
      async (steps, readAt) => {
        runs += 1;
        const actors: Actor[] = [];
        for (let i = 0; i < 2; i++) {
          const models = { model: new TeamModel(), idempotency: new IdempotencyModel<Answer>() };
          actors.push({ ...(await service.keyFor()), ...models });
        }
        const sent: Request[] = [];
        for (const move of steps) {
          const actor = actors[move.team] ?? assert.fail();
          if (move.kind === 'page') {
            await comparePage(actor, move.page, move.limit, move.omit);
            continue;
          }
          // What was sent before may have been the other team's.
          const request = move.kind === 'post' ? move.request : sent[move.nth % sent.length];
          if (!request) continue;
          if (move.kind === 'post') sent.push(request);
          await post(actor, request, move.at);
        }
        clock.set(readAt);
        for (const actor of actors) await compareAnalytics(actor, readAt);
      },
    ),
    { numRuns: runsWanted, examples: [[sentAgain, at]] },
  );
  assert.ok(runs >= runsWanted);
  t.diagnostic(JSON.stringify(seen));
  for (const [what, count] of Object.entries(seen))
    assert.ok(count > runsWanted / 50, `${what}: ${count}`);
});

async function post(actor: Actor, request: Request, at: number): Promise<void> {
  const { path, items, key } = request;
  const text = JSON.stringify(
    path === '/traces' ? itemOf(items[0]) : { traces: items.map(itemOf) },
  );
  const good = items.flatMap((item) => (item.kind === 'good' ? item.body : []));
  const rejected = items.flatMap((item, index) =>
    item.kind === 'bad' ? { index, errors: item.errors } : [],
  );
  clock.set(at);
  const answer = await send(actor, request, text);
  const isReplay = answer.headers.get('idempotent-replayed');

  if (good.length === 0) {
    assert.deepEqual([answer.status, answer.json.code], [422, 'invalid_input'], answer.text);
    seen.none += 1;
    return;
  }
  const isStored = answer.status === 201 && isReplay === null;
  const meeting =
    key === null ? null : actor.idempotency.meet(key, `${path} ${text}`, at, isStored);
  if (meeting?.kind === 'reused') {
    assert.deepEqual([answer.status, answer.json.code], [422, 'idempotency_key_reused']);
    seen.reused += 1;
    return;
  }
  assert.equal(answer.status, 201, answer.text);
  if (meeting?.kind === 'again') {
    assert.equal(answer.text, meeting.first.text);
    assert.equal(answer.headers.get('location'), meeting.first.headers.get('location'));
    assert.equal(isReplay, 'true');
    seen.again += 1;
    return;
  }
  assert.equal(isReplay, null);
  const expected = good.map((body) => actor.model.add(body, at));
  if (path === '/traces') await compareSingle(actor, answer, expected);
  else compareBatch(actor, answer, expected, rejected);
  if (key !== null) actor.idempotency.note(key, `${path} ${text}`, answer, at);
}

function itemOf(item: Item | undefined): unknown {
  return item?.kind === 'bad' ? item.item : item?.body;
}

function send({ key }: Actor, { path, key: maybeIdempotencyKey, isPacked }: Request, text: string) {
  return service.call(key, 'POST', path, isPacked ? gzipSync(text, { level: 1 }) : text, {
    ...(maybeIdempotencyKey === null ? {} : { 'idempotency-key': maybeIdempotencyKey }),
    ...(isPacked ? { 'content-encoding': 'gzip' } : {}),
  });
}

async function compareSingle(actor: Actor, answer: Answer, expected: Expected[]): Promise<void> {
  seen.single += 1;
  assert.deepEqual([comparable(answer.json)], expected);
  assert.equal(answer.json.team_id, actor.teamId);
  assert.equal(answer.headers.get('location'), `/traces/${answer.json.id}`);
  // The very next read holds it, to the byte.
  const again = await service.call(actor.key, 'GET', `/traces/${answer.json.id}`);
  assert.equal(again.text, answer.text);
}

function compareBatch(
  actor: Actor,
  { json }: Answer,
  expected: Expected[],
  rejected: readonly object[],
): void {
  seen.batch += 1;
  assert.deepEqual(json.traces.map(comparable), expected);
  assert.deepEqual(json.rejected, rejected);
  for (const { team_id } of json.traces) assert.equal(team_id, actor.teamId);
}

async function comparePage(
  actor: Actor,
  page: number,
  limit: number,
  omit: readonly PayloadName[],
): Promise<void> {
  const query = `page=${page}&limit=${limit}${omit.length > 0 ? `&omit=${omit.join(',')}` : ''}`;
  const reply = await service.call(actor.key, 'GET', `/traces?${query}`);
  const used = Math.min(limit, 100);
  const expected = actor.model.page(page, used).map((trace) => {
    const listed = { ...trace };
    for (const name of omit) delete listed[name];
    return listed;
  });
  assert.deepEqual(reply.json.traces.map(comparable), expected);
  const { total, page: shownPage, limit: shownLimit } = reply.json;
  assert.deepEqual([total, shownPage, shownLimit], [actor.model.traces.length, page, used]);
}

async function compareAnalytics(actor: Actor, nowUs: number): Promise<void> {
  const { model } = actor;
  const questions: [string, unknown][] = [
    ['overview', model.overview()],
    ['by-model', model.byModel()],
    ['by-feature', model.byFeature()],
    ['daily', model.daily(nowUs)],
  ];
  for (const [name, expected] of questions) {
    const { text } = await service.call(actor.key, 'GET', `/analytics/${name}`);
    assert.deepEqual(withExactCosts(text), expected, name);
  }
  const report = await verifyTeam(service.beside, actor.teamId);
  assert.deepEqual(report, { traces: model.traces.length, differences: [] });
}

/** The digits of money as they stand on the wire. */
function withExactCosts(text: string): unknown {
  return JSON.parse(text, (key, value, { source }) => (key === 'total_cost_usd' ? source : value));
}

/** A trace of the wire as the model holds it: the ids aside, and the time as a number. */
function comparable(json: Record<string, unknown>): Expected {
  const { id, team_id, created_at, ...rest } = json;
  assert.match(String(id), /^[0-9a-f-]{36}$/);
  assert.match(String(team_id), /^[0-9a-f-]{36}$/);
  const at = /^(.*)(\d{3})Z$/.exec(String(created_at)) ?? assert.fail(String(created_at));
  const createdAtUs = Date.parse(`${at[1]}Z`) * 1000 + Number(at[2]);
  return { ...(rest as unknown as Omit<Expected, 'createdAtUs'>), createdAtUs };
}
