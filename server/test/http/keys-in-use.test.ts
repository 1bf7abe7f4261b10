import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../support/eventually.ts';
import { hashKey } from '../../src/core/api-key.ts';
import { startTestService, temporaryFolder } from '../support/service.ts';
import type { Answer, TestService, TestServiceOptions } from '../support/service.ts';
import { assertProblem } from './helpers.ts';

const pollMs = 50;

async function withService<T>(
  options: TestServiceOptions,
  work: (service: TestService) => Promise<T>,
): Promise<T> {
  const service = await startTestService(options);
  try {
    return await work(service);
  } finally {
    await service.stop();
  }
}

test('a revoked key stops working within a second under constant use, for good', async () => {
  await withService({}, async (service) => {
    const [leaked, other] = [await service.keyFor('team'), await service.keyFor('team')];
    const use = (): Promise<Answer> => service.call(leaked.key, 'GET', '/traces');
    for (let i = 0; i < 5; i++) {
      assert.equal((await use()).status, 200);
      await sleep(pollMs);
    }
    assert.equal(await service.beside.revokeKey(leaked.keyId, Date.now() * 1000), true);
    const revokedAtMs = performance.now();
    let refusals = 0;
    const isForGood = async (): Promise<boolean> => {
      const askedAfterMs = performance.now() - revokedAtMs;
      const answer = await use();
      if (answer.status === 200) {
        assert.equal(refusals, 0, 'a refused key worked again');
        assert.ok(askedAfterMs < 1000, `it worked ${askedAfterMs} ms after its end`);
      } else {
        assertProblem(answer, 'key_revoked');
        refusals++;
      }
      assert.equal((await service.call(other.key, 'GET', '/traces')).status, 200);
      return refusals >= 5 && askedAfterMs > 1500;
    };
    await eventually('five refusals', 120_000, isForGood, pollMs);
  });
});

test('a key works until the moment it expires, and not after', async () => {
  await withService({}, async (service) => {
    let worked = 0;
    // A very busy machine may need more than two seconds for the first use.
    for (const lifeMs of [2_000, 8_000, 30_000]) {
      const expiresAtMs = Date.now() + lifeMs;
      const brief = await service.keyFor('team', { expiresAtUs: expiresAtMs * 1000 });
      let refused = 0;
      while (refused < 3) {
        const askedAtMs = Date.now();
        const answer = await service.call(brief.key, 'GET', '/traces');
        if (askedAtMs >= expiresAtMs) {
          assertProblem(answer, 'key_expired');
          refused++;
        } else if (Date.now() < expiresAtMs) {
          assert.equal(answer.status, 200);
          worked++;
        }
        await sleep(pollMs);
      }
      if (worked > 0) break;
    }
    assert.ok(worked >= 1, `worked ${worked} times`);
  });
});

describe('a key is stored as its hash only', () => {
  test('neither the first key nor any other is on disk or in the log', async () => {
    await withService({}, async (service) => {
      const made = await service.keyFor('team');
      assert.ok(service.firstKey);
      for (const key of [service.firstKey, made.key]) {
        assert.equal((await service.call(key, 'POST', '/traces', { model: 'm' })).status, 201);
        const bytes = await service.bytesOnDisk();
        assert.ok(bytes.includes(hashKey(key)) || bytes.includes(hashBytes(key)), 'its hash is');
        assert.ok(!bytes.includes(key));
        assert.ok(!bytes.includes(key.slice('tt_'.length + 6)), 'nor what is behind the prefix');
        assert.ok(!service.log().includes(key));
      }
    });
  });
});

function hashBytes(key: string): Buffer {
  return Buffer.from(hashKey(key), 'hex');
}

describe('a key from the environment', () => {
  const key = 'operator/chosen+text=1234';
  const env = { TRACETALLY_API_KEY: key };

  test('works for the team default, with every scope, and makes no other key', async () => {
    await withService({ env }, async (service) => {
      assert.equal(service.firstKey, null);
      const created = await service.call(key, 'POST', '/traces', { model: 'm' });
      assert.equal(created.status, 201);
      const team = await service.beside.findTeam('default');
      assert.equal(created.json.team_id, team?.id);
      const page = await service.call(key, 'GET', '/traces');
      assert.equal(page.json.total, 1);
      assert.equal((await service.beside.keys(null)).length, 0);
      assertProblem(await service.call(`${key}5`, 'GET', '/traces'), 'key_unknown');
      assertProblem(await service.call(key.slice(0, -1), 'GET', '/traces'), 'key_unknown');
      assertProblem(await service.call(hashKey(key), 'GET', '/traces'), 'key_unknown');
    });
  });

  test('leaves nothing on disk and nothing in the log, not even its hash', async () => {
    await withService({ env }, async (service) => {
      assert.equal((await service.call(key, 'POST', '/traces', { model: 'seen' })).status, 201);
      const bytes = await service.bytesOnDisk();
      assert.ok(bytes.includes('seen'), 'the trace is on disk');
      for (const trace of [key, hashKey(key), hashBytes(key)]) {
        assert.ok(!bytes.includes(trace));
        assert.ok(!service.log().includes(trace.toString()));
      }
    });
  });

  test('ends with the variable', async () => {
    const folder = temporaryFolder();
    try {
      const status = (service: TestService): Promise<number> =>
        service.call(key, 'GET', '/traces').then((answer) => answer.status);
      assert.equal(await withService({ env, folder: folder.path }, status), 200);
      assert.equal(await withService({ folder: folder.path }, status), 401);
    } finally {
      folder.remove();
    }
  });
});

describe('under a base path', () => {
  const flags = { 'base-path': '/v1' };

  test('probes answer without a key at the root and under it, the document under it', async () => {
    await withService({ flags }, async ({ url }) => {
      const { origin } = new URL(url);
      const open = ['/healthz', '/readyz', '/v1/healthz', '/v1/readyz', '/v1/openapi.json'];
      for (const path of open) {
        for (const method of ['GET', 'HEAD']) {
          const response = await fetch(`${origin}${path}`, { method });
          assert.equal(response.status, 200, `${method} ${path}`);
        }
      }
      assert.deepEqual(await (await fetch(`${origin}/healthz`)).json(), { status: 'ok' });
      assert.deepEqual(await (await fetch(`${origin}/readyz`)).json(), { status: 'ready' });
    });
  });

  test('the API is served there and at no other path', async () => {
    // Not /v1: there POST /traces has the path that POST /v1/traces has without a base path.
    await withService({ flags: { 'base-path': '/tally' } }, async (service) => {
      const { key } = await service.keyFor();
      const { origin } = new URL(service.url);
      const headers = { authorization: `Bearer ${key}` };
      const document = (await service.call(null, 'GET', '/openapi.json')).json;
      assert.deepEqual(document.servers, [{ url: '/tally' }]);
      const paths = Object.keys(document.paths).filter((path) => !path.includes('{'));
      for (const path of paths) {
        // A path that only takes a POST reports the missing body.
        const isRead = 'get' in document.paths[path];
        const sent = { headers, method: isRead ? 'GET' : 'POST' };
        const status = isRead ? 200 : 400;
        assert.equal((await fetch(`${origin}/tally${path}`, sent)).status, status, path);
        assert.equal((await fetch(`${origin}${path}`, sent)).status, 404, path);
      }
      assert.ok(paths.length >= 5);
      assert.equal((await fetch(`${origin}/openapi.json`)).status, 404);
    });
  });
});
