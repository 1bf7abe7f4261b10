import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import {
  dailyRange,
  dailySeries,
  featureRecord,
  modelRecord,
  overviewOf,
} from '../../src/core/analytics.ts';
import { draftTrace } from '../../src/core/trace.ts';
import type { Trace } from '../../src/core/trace.ts';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import type { Store } from '../../src/store/store.ts';
import { verifyTeam } from '../../src/store/verify.ts';
import { moment, sentTrace } from '../model/arbitraries.ts';
import { TeamModel } from '../model/team-model.ts';
import type { Expected } from '../model/team-model.ts';
import { groupsOf, manualClock, temporaryFolder } from '../support/service.ts';

const folder = temporaryFolder();
const clock = manualClock(0);
let store: Store;
let runs = 0;

before(async () => {
  store = await openSqliteStore({
    path: join(folder.path, 'property.db'),
    clock: clock.source,
    role: 'server',
  });
});
after(async () => {
  await store.close();
  folder.remove();
});

/** At a moment, some callers write some traces each, of one of three teams. */
const step = fc.record({
  at: moment,
  writes: fc.array(
    fc.record({
      team: fc.nat({ max: 2 }),
      bodies: fc.array(sentTrace, { minLength: 1, maxLength: 4 }),
    }),
    { minLength: 1, maxLength: 4 },
  ),
});

test('the store answers as the plain model does, and verify is clean, for 1,000 random histories', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 4 }),
      moment,
      fc.integer({ min: 1, max: 5 }),
      async (steps, readAt, limit) => {
        runs += 1;
        const teams = await Promise.all(
          [0, 1, 2].map(async (i) => {
            const { team } = await store.ensureTeam(`run ${runs}, team ${i}`, 1);
            return { id: team.id, model: new TeamModel() };
          }),
        );
        for (const { at, writes } of steps) {
          clock.set(at);
          const outcomes = await store.append(
            writes.map(({ team, bodies }) => ({
              teamId: teams[team]?.id ?? '',
              drafts: bodies.map(draftTrace),
            })),
          );
          assert.ok(outcomes.every(({ kind }) => kind === 'stored'));
          for (const { team, bodies } of writes)
            for (const body of bodies) teams[team]?.model.add(body, at);
        }
        for (const { id, model } of teams) await compare(id, model, readAt, limit);
      },
    ),
    { numRuns: 1000 },
  );
  assert.ok(runs >= 1000);
  assert.deepEqual(await store.checkStorage(), []);
});

async function compare(
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
  const range = dailyRange(readAt);
  assert.deepEqual(plain(overviewOf(await store.total(teamId))), model.overview());
  assert.deepEqual(
    plain((await groupsOf(store, teamId, 'model')).map(modelRecord)),
    model.byModel(),
  );
  assert.deepEqual(
    plain((await groupsOf(store, teamId, 'feature')).map(featureRecord)),
    model.byFeature(),
  );
  assert.deepEqual(plain(dailySeries(range, await store.days(teamId, range))), model.daily(readAt));
  const report = await verifyTeam(store, teamId);
  assert.deepEqual(report, { traces: model.traces.length, differences: [] });
}

/** With the exact digits of raw JSON numbers as text. */
function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_key, item: unknown) => (JSON.isRawJSON(item) ? item.rawJSON : item)),
  );
}

function comparable(trace: Trace): Expected {
  return {
    model: trace.model,
    input: trace.input,
    output: trace.output,
    prompt_tokens: trace.promptTokens,
    completion_tokens: trace.completionTokens,
    latency_ms: trace.latencyMs,
    cost_usd: trace.costUsd,
    status: trace.status,
    error_message: trace.errorMessage,
    feature_name: trace.featureName,
    user_identifier: trace.userIdentifier,
    createdAtUs: trace.createdAtUs,
  };
}
