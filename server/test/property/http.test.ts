import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { verifyTeam } from '../../src/store/verify.ts';
import { moment, sentTrace } from '../model/arbitraries.ts';
import { TeamModel } from '../model/team-model.ts';
import type { Expected } from '../model/team-model.ts';
import { manualClock, startTestService } from '../support/service.ts';
import type { KeyHolder, TestService } from '../support/service.ts';

const clock = manualClock(1);
let service: TestService;
let runs = 0;

before(async () => {
  service = await startTestService({ clock });
});
after(() => service.stop());

type Actor = KeyHolder & { model: TeamModel };

const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('post' as const),
      at: moment,
      team: fc.nat({ max: 1 }),
      body: sentTrace,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('page' as const),
      team: fc.nat({ max: 1 }),
      page: fc.integer({ min: 1, max: 4 }),
      limit: fc.integer({ min: 1, max: 150 }),
      omit: fc.subarray(['input', 'output'] as const),
    }),
  },
);

test('the API answers as the plain model does, and verify is clean, for 1,000 random conversations', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 10 }),
      moment,
      async (steps, readAt) => {
        runs += 1;
        const actors: Actor[] = [];
        for (let i = 0; i < 2; i++)
          actors.push({ ...(await service.keyFor()), model: new TeamModel() });
        for (const move of steps) {
          const actor = actors[move.team] ?? assert.fail();
          if (move.kind === 'post') await post(actor, move.body, move.at);
          else await comparePage(actor, move.page, move.limit, move.omit);
        }
        clock.set(readAt);
        for (const actor of actors) await compareAnalytics(actor, readAt);
      },
    ),
    { numRuns: 1000 },
  );
  assert.ok(runs >= 1000);
});

async function post(actor: Actor, body: object & { model: string }, at: number): Promise<void> {
  clock.set(at);
  const reply = await service.call(actor.key, 'POST', '/traces', body);
  assert.equal(reply.status, 201, reply.text);
  const expected = actor.model.add(body, at);
  assert.deepEqual(comparable(reply.json), expected);
  assert.equal(reply.json.team_id, actor.teamId);
  assert.equal(reply.headers.get('location'), `/traces/${reply.json.id}`);
  // The very next read holds it, to the byte.
  const again = await service.call(actor.key, 'GET', `/traces/${reply.json.id}`);
  assert.equal(again.text, reply.text);
}

async function comparePage(
  actor: Actor,
  page: number,
  limit: number,
  omit: readonly ('input' | 'output')[],
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
