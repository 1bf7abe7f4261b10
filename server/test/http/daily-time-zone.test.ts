import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as http from './helpers.ts';

test('daily answers with whole days of one time zone if the zone changes between its two reads', async (t) => {
  const timeZone = 'Asia/Kathmandu';
  let isChanged = false;
  const service = await http.startBrokenService((store) => ({
    async timeZone(teamId) {
      const found = await store.timeZone(teamId);
      if (!isChanged) await store.rebuild(teamId, timeZone);
      isChanged = true;
      return found;
    },
  }));
  t.after(() => service.stop());
  const headers = { ...http.bearer(service.key), ...http.jsonType };
  const body = JSON.stringify({ model: 'm' });
  const post = { method: 'POST', path: '/traces', body, headers };
  assert.equal((await http.send(service.url, post)).status, 201);
  const { status, json } = await http.send(service.url, { path: '/analytics/daily', headers });
  assert.equal(status, 200);
  assert.ok(isChanged);
  assert.equal(json.at(-1).date, Temporal.Now.plainDateISO(timeZone).toString());
  const calls = json.map(({ call_count }: { call_count: number }) => call_count);
  assert.equal(
    calls.reduce((sum: number, count: number) => sum + count, 0),
    1,
  );
});
