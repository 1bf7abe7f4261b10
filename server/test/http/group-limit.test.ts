import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startTestService } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';
import { assertFieldError } from './helpers.ts';

let service: TestService;
let team: KeyHolder;

/** More than are read from the store at a time. */
const namesCount = 1_203;
const name = (index: number): string => `name-${String(index).padStart(4, '0')}`;

before(async () => {
  service = await startTestService();
  team = await service.keyFor();
  // Name 1,202 has two calls and comes first; all others have one and follow by name.
  const indexes = [...Array.from({ length: namesCount }, (_, index) => index), namesCount - 1];
  const traces = indexes.map((index) => ({ model: name(index), feature_name: name(index) }));
  for (let from = 0; from < traces.length; from += 1_000) {
    const body = { traces: traces.slice(from, from + 1_000) };
    assert.equal((await service.call(team.key, 'POST', '/traces/batch', body)).status, 201);
  }
});
after(() => service.stop());

for (const [path, field] of [
  ['by-model', 'model'],
  ['by-feature', 'feature_name'],
] as const) {
  const ask = (query: string): Promise<Answer> =>
    service.call(team.key, 'GET', `/analytics/${path}${query}`);

  test(`${path} with a limit has the first records of all`, async () => {
    const all = (await ask('')).json as Record<string, unknown>[];
    assert.equal(all.length, namesCount);
    assert.deepEqual(
      all.slice(0, 3).map((record) => record[field]),
      [name(namesCount - 1), name(0), name(1)],
    );
    for (const limit of [1, 2, 999, 1_000]) {
      const { status, json } = await ask(`?limit=${limit}`);
      assert.equal(status, 200);
      assert.deepEqual(json, all.slice(0, limit), `limit ${limit}`);
    }
  });

  describe(`the limit of ${path} is an integer from 1 to 1000`, () => {
    for (const written of ['', '0', '-1', '1001', '9999', '01', '1.5', '1e2', 'ten', '%ZZ']) {
      test(`not "${written}"`, async () => {
        const message = assertFieldError(await ask(`?limit=${written}`), 'limit');
        assert.equal(message, 'must be an integer from 1 to 1000');
      });
    }
    test('not two of them', async () => {
      assertFieldError(await ask('?limit=1&limit=2'), 'limit', 'must appear only once');
    });
  });
}
