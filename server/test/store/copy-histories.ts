import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Scope } from '../../src/core/api-key.ts';
import { draftTrace } from '../../src/core/trace.ts';
import type { Trace } from '../../src/core/trace.ts';
import { makeKey } from '../../src/store/teams-and-keys.ts';
import type { Store } from '../../src/store/store.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { moment, maybeIdempotencyKey, sentTrace } from '../model/arbitraries.ts';
import type { Sent } from '../model/team-model.ts';
import { overviewQuery } from '../../src/core/analytics.ts';
import { groupsOf, talliesOf, totalOf } from '../support/service.ts';
import type { ManualClock } from '../support/service.ts';

/** Before all moments of the histories, so that every request of them is still known. */
export const nowUs = Date.UTC(2026, 0, 1) * 1000;

interface Key {
  name: string | null;
  scope: Scope;
  expiresAtUs: number | null;
  revokedAtUs: number | null;
  usedAtUs: number | null;
  isRotated: boolean;
}

const key: fc.Arbitrary<Key> = fc.record({
  name: fc.constantFrom(null, 'ci', 'Ärger 😀'),
  scope: fc.constantFrom('ingest' as const, 'read' as const, 'full' as const),
  expiresAtUs: fc.option(moment),
  revokedAtUs: fc.option(moment),
  usedAtUs: fc.option(moment),
  isRotated: fc.boolean(),
});

const step = fc.record({
  at: moment,
  bodies: fc.array(sentTrace, { minLength: 1, maxLength: 6 }),
  idempotencyKey: maybeIdempotencyKey,
});

/** What befalls one team. */
export const history = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 5 }),
  keys: fc.array(key, { maxLength: 3 }),
});

export type History = typeof history extends fc.Arbitrary<infer T> ? T : never;

/** Writes a history into a store. */
export async function live(
  store: Store,
  clock: ManualClock,
  teamId: string,
  { steps, keys }: History,
): Promise<void> {
  for (const { at, bodies, idempotencyKey } of steps) {
    clock.set(at);
    const [outcome] = await store.append([
      {
        teamId,
        drafts: bodies.map(draftTrace),
        ...(idempotencyKey !== null && {
          request: { keyHash: idempotencyKey, bodyHash: `b${bodies.length}`, rejected: `at ${at}` },
        }),
      },
    ]);
    assert.ok(outcome && (outcome.kind !== 'failed' || outcome.code !== 'internal'));
  }
  for (const { name, scope, expiresAtUs, revokedAtUs, usedAtUs, isRotated } of keys) {
    const { record } = makeKey({ name, scope, nowUs: 1, expiresAtUs });
    await store.createKey(teamId, record);
    if (isRotated) {
      const next = makeKey({ name, scope, nowUs: 2, expiresAtUs });
      assert.ok(await store.rotateKey(record.id, next.record, revokedAtUs ?? 3));
    }
    if (revokedAtUs !== null) await store.revokeKey(record.id, revokedAtUs);
    const made = (await store.keys(null)).filter(({ id }) => id === record.id);
    if (usedAtUs !== null) {
      await store.takeKeys(made.map((one) => ({ ...one, lastUsedAtUs: usedAtUs })));
    }
  }
}

async function pageOf(store: Store, teamId: string, page: number, limit: number) {
  const { total, first, rest } = await store.page(teamId, { page, limit, omit: new Set() });
  const traces: Trace[] = [...first];
  if (rest) for await (const chunk of rest) traces.push(...chunk);
  return { total, traces };
}

/** Holds the two stores' answers about a team against each other. */
export async function compareTeam(
  from: Store,
  to: Store,
  teamId: string,
  limit: number,
): Promise<void> {
  assert.deepEqual(await to.counter(teamId), await from.counter(teamId));
  for (let page = 1; ; page++) {
    const theirs = await pageOf(from, teamId, page, limit);
    assert.deepEqual(await pageOf(to, teamId, page, limit), theirs, `page ${page}`);
    if (theirs.traces.length < limit) break;
  }
  assert.deepEqual(await totalOf(to, teamId), await totalOf(from, teamId));
  for (const field of ['model', 'feature_name', 'user_identifier'] as const) {
    const groups = await groupsOf(from, teamId, field);
    assert.deepEqual(await groupsOf(to, teamId, field), groups);
  }
  const daily = { ...overviewQuery, interval: 'day' } as const;
  assert.deepEqual(await talliesOf(to, teamId, daily), await talliesOf(from, teamId, daily));
  const known = new Map((await to.storedRequests(teamId, nowUs)).map((one) => [one.keyHash, one]));
  // One that the source has forgotten since an earlier copy may still be known.
  for (const request of await from.storedRequests(teamId, nowUs)) {
    assert.deepEqual(known.get(request.keyHash), request);
  }
  assert.deepEqual((await verifyTeam(to, teamId)).differences, []);
}

/** The texts and numbers that random data may miss, all of them in one trace or two. */
const awkwardTraces: Sent[] = [
  {
    model: '😀'.repeat(255),
    input: `a\u0000b 😀 ${'long '.repeat(1000)}`,
    output: '',
    error_message: '\u0000'.repeat(2000),
    cost_usd: 123_456.789012345,
    prompt_tokens: null,
    completion_tokens: 0,
    latency_ms: 2 ** 31 - 1,
    status: 'error',
    feature_name: "'; --",
    user_identifier: '\uFFFD',
  },
  { model: 'm', input: null, output: '\u0000', error_message: '', cost_usd: 1e-7 },
  { model: 'm', input: '', output: null, cost_usd: 0.1 + 0.2 },
];

export const awkward: History = {
  steps: [{ at: nowUs, bodies: awkwardTraces, idempotencyKey: null }],
  keys: [],
};
