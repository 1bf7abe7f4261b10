import assert from 'node:assert/strict';
import fc from 'fast-check';
import { dailyRange, daysIn, everyDay } from '../../src/core/analytics.ts';
import { calendarOf } from '../../src/core/calendar.ts';
import { draftTrace } from '../../src/core/trace.ts';
import type { Trace } from '../../src/core/trace.ts';
import type { Replay, WriteOutcome } from '../../src/store/trace-writer.ts';
import type { Store } from '../../src/store/store.ts';
import { dayJson, groupJson, overviewJson } from '../../src/http/analytics-json.ts';
import { traceJson } from '../../src/http/trace-json.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { moment, maybeIdempotencyKey, sentTrace } from '../model/arbitraries.ts';
import { IdempotencyModel } from '../model/idempotency-model.ts';
import { TeamModel } from '../model/team-model.ts';
import type { Expected, Sent } from '../model/team-model.ts';
import { daysOf, groupsOf, totalOf } from '../support/service.ts';
import type { ManualClock } from '../support/service.ts';

interface TeamUnderTest {
  id: string;
  model: TeamModel;
  /** The answers that later requests with the same idempotency key must get. */
  idempotency: IdempotencyModel<Replay>;
}

interface Call {
  team: number;
  bodies: Sent[];
  key: string | null;
  body: string;
}

/** At a moment, some callers write some traces each, of one of three teams, some with keys that meet. */
const step = fc.record({
  at: moment,
  calls: fc.array(
    fc.record<Call>({
      team: fc.nat({ max: 2 }),
      bodies: fc.array(sentTrace, { minLength: 1, maxLength: 4 }),
      key: maybeIdempotencyKey,
      body: fc.constantFrom('b1', 'b1', 'b2'),
    }),
    { minLength: 1, maxLength: 4 },
  ),
});

/** How often each outcome was seen. */
export type Seen = Record<WriteOutcome['kind'], number>;

/** Random histories, after each of which the store answers as the plain model does, and verify is clean. */
export async function compareHistories(
  store: Store,
  clock: ManualClock,
  numRuns: number,
): Promise<Seen> {
  const seen: Seen = { stored: 0, replayed: 0, failed: 0 };
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 4 }),
      moment,
      fc.integer({ min: 1, max: 5 }),
      async (steps, readAt, limit) => {
        runs += 1;
        const teams = await Promise.all(
          [0, 1, 2].map(async (i): Promise<TeamUnderTest> => {
            const { team } = await store.ensureTeam(`run ${runs}, team ${i}`, 1);
            return { id: team.id, model: new TeamModel(), idempotency: new IdempotencyModel() };
          }),
        );
        for (const { at, calls } of steps) {
          clock.set(at);
          const outcomes = await store.append(
            calls.map(({ team, bodies, key, body }, i) => ({
              teamId: teams[team]?.id ?? '',
              drafts: bodies.map(draftTrace),
              ...(key !== null && {
                request: { keyHash: key, bodyHash: body, rejected: `of call ${i} at ${at}` },
              }),
            })),
          );
          for (const [i, call] of calls.entries()) {
            const team = teams[call.team] ?? assert.fail();
            const outcome = outcomes[i] ?? assert.fail('no outcome');
            seen[outcome.kind] += 1;
            await compareOutcome(store, team, call, at, `of call ${i} at ${at}`, outcome);
          }
        }
        for (const { id, model } of teams) await compare(store, id, model, readAt, limit);
      },
    ),
    { numRuns },
  );
  assert.ok(runs >= numRuns);
  for (const [what, count] of Object.entries(seen)) {
    assert.ok(count > numRuns / 20, `${what}: ${count}`);
  }
  assert.deepEqual(await store.checkStorage(), []);
  return seen;
}

async function compareOutcome(
  store: Store,
  { id, model, idempotency }: TeamUnderTest,
  { bodies, key, body }: Call,
  at: number,
  rejected: string,
  outcome: WriteOutcome,
): Promise<void> {
  const isStored = outcome.kind === 'stored';
  if (key === null) idempotency.pass(at);
  const meeting = key === null ? null : idempotency.meet(key, body, at, isStored);
  if (meeting?.kind === 'reused') {
    const code = outcome.kind === 'failed' ? outcome.code : outcome.kind;
    assert.equal(code, 'idempotency_key_reused');
    return;
  }
  if (meeting?.kind === 'again') {
    assert.deepEqual(outcome, { kind: 'replayed', ...meeting.first });
    const { firstSeq, count } = meeting.first;
    const traces = await store.range(id, { firstSeq, count });
    const expected = model.traces.slice(firstSeq - 1, firstSeq - 1 + count);
    assert.deepEqual(traces.map(comparable), expected);
    return;
  }
  assert.equal(outcome.kind, 'stored');
  const place = { firstSeq: model.traces.length + 1, count: bodies.length, rejected };
  for (const sent of bodies) model.add(sent, at);
  if (key !== null) idempotency.note(key, body, place, at);
}

async function compare(
  store: Store,
  teamId: string,
  model: TeamModel,
  readAt: number,
  limit: number,
): Promise<void> {
  const pages = Math.ceil(model.traces.length / limit) + 1;
  for (let page = 1; page <= pages; page++) {
    const found = await store.page(teamId, { page, limit, omit: new Set() });
    assert.equal(found.rest, null);
    const traces = found.first;
    assert.equal(found.total, model.traces.length);
    assert.deepEqual(traces.map(comparable), model.page(page, limit));
    for (const trace of traces) assert.deepEqual(await store.trace(teamId, trace.id), trace);
  }
  assert.deepEqual(exact(overviewJson(await totalOf(store, teamId))), model.overview());
  const byModel = await groupsOf(store, teamId, 'model');
  assert.deepEqual(
    byModel.map((group) => exact(groupJson('model', group))),
    model.byModel(),
  );
  const byFeature = await groupsOf(store, teamId, 'feature_name');
  assert.deepEqual(
    byFeature.map((group) => exact(groupJson('feature_name', group))),
    model.byFeature(),
  );
  const utc = calendarOf('UTC');
  const series = daysIn(dailyRange(readAt, utc), utc);
  const days = everyDay(series, utc, await daysOf(store, teamId, readAt));
  assert.deepEqual(
    days.map((day) => exact(dayJson(day))),
    model.daily(readAt),
  );
  const report = await verifyTeam(store, teamId);
  assert.deepEqual(report, { traces: model.traces.length, differences: [] });
}

/** With the digits of money as they are on the wire. */
function exact(json: string): unknown {
  return JSON.parse(json, (name, value: unknown, { source }) =>
    name === 'total_cost_usd' ? source : value,
  );
}

function comparable(trace: Trace): Expected {
  const { id, team_id, created_at, ...fields } = JSON.parse(traceJson(trace)) as WireTrace;
  assert.ok(id === trace.id && team_id === trace.teamId && created_at !== '');
  return { ...fields, createdAtUs: trace.createdAtUs };
}

type WireTrace = Omit<Expected, 'createdAtUs'> & Record<'id' | 'team_id' | 'created_at', string>;
