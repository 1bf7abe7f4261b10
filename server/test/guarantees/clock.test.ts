import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verifyTeam } from '../../src/tools/verify.ts';
import { manualClock, startTestService, us } from '../support/service.ts';

const noon = us('2026-11-04T12:00:00Z');
const hourUs = 3_600_000_000;

test('order, days and ids stay right while the clock is set back and forth', async () => {
  const clock = manualClock(noon);
  const service = await startTestService({ clock });
  try {
    const { key, teamId } = await service.keyFor();
    const post = async (nowUs: number, model: string) => {
      clock.set(nowUs);
      const reply = await service.call(key, 'POST', '/traces', { model });
      assert.equal(reply.status, 201);
      return reply.json as { id: string; created_at: string };
    };
    const steps: [string, number, string][] = [
      ['noon', noon, '2026-11-04T12:00:00.000000Z'],
      ['the same microsecond', noon, '2026-11-04T12:00:00.000001Z'],
      ['4 s back: time follows the sequence', noon - 4_000_000, '2026-11-04T12:00:00.000002Z'],
      ['an hour on', noon + hourUs, '2026-11-04T13:00:00.000000Z'],
      ['an hour back: the wall clock counts', noon, '2026-11-04T12:00:00.000000Z'],
      ['a year on', us('2027-11-04T12:00:00Z'), '2027-11-04T12:00:00.000000Z'],
      ['and back', noon + 60_000_000, '2026-11-04T12:01:00.000000Z'],
      ['across midnight', us('2026-11-05T00:00:00Z') - 1, '2026-11-04T23:59:59.999999Z'],
      ['the next day', us('2026-11-05T00:00:00Z'), '2026-11-05T00:00:00.000000Z'],
      [
        'back before midnight by a second',
        us('2026-11-04T23:59:59Z'),
        '2026-11-05T00:00:00.000001Z',
      ],
    ];
    const ids: string[] = [];
    for (const [name, at, expected] of steps) {
      const trace = await post(at, name);
      assert.equal(trace.created_at, expected, name);
      // An id contains the millisecond of its trace, even after clock jumps.
      const ms = Number.parseInt(trace.id.slice(0, 8) + trace.id.slice(9, 13), 16);
      assert.equal(ms, Date.parse(`${expected.slice(0, 23)}Z`), name);
      ids.unshift(trace.id);
    }
    assert.equal(new Set(ids).size, steps.length);
    const page = (await service.call(key, 'GET', '/traces?limit=100')).json;
    assert.deepEqual(
      page.traces.map(({ id }: { id: string }) => id),
      ids,
      'the order is that of the writes',
    );
    const daily: { date: string; call_count: number }[] = (
      await service.call(key, 'GET', '/analytics/daily')
    ).json;
    assert.deepEqual(daily.map(({ date, call_count }) => [date, call_count]).slice(-2), [
      ['2026-11-03', 0],
      ['2026-11-04', 7],
    ]);
    clock.set(us('2026-11-05T00:00:01Z'));
    const next: { call_count: number }[] = (await service.call(key, 'GET', '/analytics/daily'))
      .json;
    assert.deepEqual(
      next.map(({ call_count }) => call_count),
      [0, 0, 0, 0, 0, 7, 2],
    );
    assert.deepEqual((await verifyTeam(service.beside, teamId)).differences, []);
    const warnings = service.log().match(/ahead of the clock/g) ?? [];
    assert.equal(warnings.length, 2, 'one warning for each jump back');
  } finally {
    await service.stop();
  }
});
