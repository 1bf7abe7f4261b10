import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { generateKey } from '../../src/core/api-key.ts';
import { limits } from '../../src/limits.ts';
import { assertProblem, bearer, jsonType, send } from '../http/helpers.ts';
import { startTestService } from '../support/service.ts';
import type { Answer, TestService } from '../support/service.ts';
import { assertServes, exchange, exchangeAnswers, writeRequest } from './helpers.ts';

const allowed = limits.authFailuresPerMinuteMax;
const proxied = { 'trust-proxy': '127.0.0.1' };

async function withService(
  flags: Record<string, string>,
  work: (service: TestService) => Promise<void>,
): Promise<void> {
  const service = await startTestService({ flags });
  try {
    await work(service);
  } finally {
    await service.stop();
  }
}

/** One try with a key that was never made. */
function guess(service: TestService, headers: Record<string, string> = {}): Promise<Answer> {
  return send(service.url, { path: '/traces', headers: { ...bearer(generateKey()), ...headers } });
}

function from(address: string): Record<string, string> {
  return { 'x-forwarded-for': address };
}

/** Uses up all tries that the headers of `next` have together, and no more. */
async function useUp(service: TestService, next: (i: number) => Record<string, string>) {
  for (let i = 0; i < allowed; i++) assertProblem(await guess(service, next(i)), 'key_unknown');
}

test('keys can be guessed no more than 30 times a minute, whatever is tried and wherever', async () => {
  await withService({}, async (service) => {
    const holder = await service.keyFor();
    const expired = await service.keyFor(holder.team, { expiresAtUs: 1 });
    const revoked = await service.keyFor(holder.team);
    await service.beside.revokeKey(revoked.keyId, Date.now() * 1000);
    const tries = [
      bearer(generateKey()),
      bearer('short'),
      bearer(expired.key),
      bearer(revoked.key),
      { authorization: 'Basic eDp4' },
      {},
    ];
    const paths = ['/traces', `/traces/${'0'.repeat(36)}`, '/analytics/overview'];
    const methods = ['GET', 'HEAD'];
    const ask = (i: number): Promise<Answer> =>
      send(service.url, {
        method: methods[i % methods.length] ?? '',
        path: paths[i % paths.length] ?? '',
        headers: tries[i % tries.length] ?? {},
      });
    for (let i = 0; i < allowed; i++) assert.equal((await ask(i)).status, 401, `try ${i}`);
    for (let i = 0; i < 12; i++) assert.equal((await ask(i)).status, 429, `then try ${i}`);
    const write = { method: 'POST', path: '/traces', headers: jsonType, body: '{' };
    assertProblem(await send(service.url, write), 'too_many_failed_attempts');
  });
});

test('guesses that arrive all at once get no more tries than others', async () => {
  await withService({}, async ({ url }) => {
    const burst = Array.from({ length: 25 }, (_, i) =>
      writeRequest({ path: '/traces', key: generateKey(), isLast: i === 24 }),
    );
    const bursts = Array.from({ length: 8 }, () => exchangeAnswers(url, burst.join('')));
    const statuses = (await Promise.all(bursts)).flat().map(({ status }) => status);
    assert.equal(statuses.length, 200);
    const tried = statuses.filter((status) => status === 401).length;
    assert.ok(tried >= 1 && tried <= allowed, `${tried} tries`);
    assert.equal(statuses.filter((status) => status === 429).length, 200 - tried);
  });
});

test('a valid key goes on working from an address that has guessed too often', async () => {
  await withService({}, async (service) => {
    const holder = await service.keyFor();
    const weak = await service.keyFor(holder.team, { scope: 'ingest' });
    await useUp(service, () => ({}));
    for (let i = 0; i < 40; i++) {
      assertProblem(await guess(service), 'too_many_failed_attempts');
      assert.equal((await service.call(holder.key, 'GET', '/traces')).status, 200);
      assertProblem(await service.call(weak.key, 'GET', '/traces'), 'scope_missing');
    }
    await assertServes(service, holder);
    assertProblem(await guess(service), 'too_many_failed_attempts');
  });
});

test('requests that succeed, and keys that lack a scope, use up no tries', async () => {
  await withService({}, async (service) => {
    const weak = await service.keyFor('team', { scope: 'ingest' });
    const holder = await service.keyFor('team');
    for (let i = 0; i < allowed + 5; i++) {
      assert.equal((await service.call(holder.key, 'GET', '/traces')).status, 200);
      assertProblem(await service.call(weak.key, 'GET', '/traces'), 'scope_missing');
      assert.equal((await send(service.url, { path: '/nowhere' })).status, 404);
    }
    await useUp(service, () => ({}));
  });
});

test('after a minute there are new tries, and no earlier', async (t) => {
  await withService({}, async (service) => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
    await useUp(service, () => ({}));
    t.mock.timers.tick(55_000);
    const refused = await guess(service);
    assertProblem(refused, 'too_many_failed_attempts');
    assert.ok(Number(refused.headers.get('retry-after')) <= 5);
    t.mock.timers.tick(5_001);
    await useUp(service, () => ({}));
    assertProblem(await guess(service), 'too_many_failed_attempts');
  });
});

describe('without --trust-proxy', () => {
  test('no header makes another address of one client', async () => {
    const names = (
      'x-forwarded-for forwarded x-real-ip x-client-ip cf-connecting-ip true-client-ip ' +
      'x-originating-ip x-cluster-client-ip fastly-client-ip via'
    ).split(' ');
    await withService({}, async (service) => {
      const next = (i: number): Record<string, string> =>
        Object.fromEntries(
          names.map((n) => [n, n === 'forwarded' ? `for=10.0.0.${i}` : `10.0.0.${i}`]),
        );
      await useUp(service, next);
      assertProblem(await guess(service, next(99)), 'too_many_failed_attempts');
    });
  });
  test('nor does it with --trust-proxy for another proxy than the one that calls', async () => {
    await withService({ 'trust-proxy': '10.0.0.0/8,::1' }, async (service) => {
      await useUp(service, (i) => from(`192.0.2.${i}`));
      assertProblem(await guess(service, from('192.0.2.99')), 'too_many_failed_attempts');
    });
  });
});

describe('with --trust-proxy', () => {
  test('addresses are counted apart', async () => {
    await withService(proxied, async (service) => {
      await useUp(service, () => from('192.0.2.1'));
      assertProblem(await guess(service, from('192.0.2.1')), 'too_many_failed_attempts');
      await useUp(service, () => from('192.0.2.2'));
      assertProblem(await guess(service, from('192.0.2.2')), 'too_many_failed_attempts');
      assertProblem(await guess(service), 'key_unknown');
    });
  });
  test('only what the proxy itself added is believed', async () => {
    await withService(proxied, async (service) => {
      await useUp(service, (i) => from(`10.9.9.${i}, 192.0.2.3`));
      assertProblem(await guess(service, from('10.9.9.99, 192.0.2.3')), 'too_many_failed_attempts');
      assertProblem(await guess(service, from('192.0.2.3,127.0.0.1')), 'too_many_failed_attempts');
      assertProblem(await guess(service, from('10.9.9.1')), 'key_unknown');
    });
  });
  test('an IPv6 network of 64 bits is one address, however it is written', async () => {
    await withService(proxied, async (service) => {
      const net = '2001:db8:1:2';
      await useUp(service, (i) => from(`${net}:${i.toString(16)}:${i}::${(i * 77).toString(16)}`));
      for (const one of [
        `${net}::`,
        '2001:DB8:1:2:ffff::1',
        '2001:0db8:0001:0002:0000:0000:0000:0001',
        `${net}:0:0:192.0.2.1`,
      ]) {
        assertProblem(await guess(service, from(one)), 'too_many_failed_attempts');
      }
      assertProblem(await guess(service, from('2001:db8:1:3::1')), 'key_unknown');
    });
  });
  test('an IPv4 address inside an IPv6 one is that IPv4 address', async () => {
    await withService(proxied, async (service) => {
      await useUp(service, () => from('192.0.2.4'));
      for (const one of ['::ffff:192.0.2.4', '::FFFF:c000:204']) {
        assertProblem(await guess(service, from(one)), 'too_many_failed_attempts');
      }
      assertProblem(await guess(service, from('::ffff:192.0.2.5')), 'key_unknown');
    });
  });
  test('a port behind the address makes no other address of it', async () => {
    await withService(proxied, async (service) => {
      await useUp(service, (i) => from(`192.0.2.6:${40_000 + i}`));
      assertProblem(await guess(service, from('192.0.2.6:50000')), 'too_many_failed_attempts');
    });
  });
  test('an invalid address has no effect', async () => {
    await withService(proxied, async (service) => {
      const holder = await service.keyFor();
      const odd = ['unknown', '_hidden', 'fe80::1%eth0', '1::2::3', '999.1.1.1', ',', ' , ', '%00'];
      for (const one of [...odd, '"', "'; drop table teams;--", '1.1.1.1,'.repeat(1500)]) {
        assertProblem(await guess(service, from(one)), 'key_unknown');
        const read = { path: '/traces', headers: { ...bearer(holder.key), ...from(one) } };
        assert.equal((await send(service.url, read)).status, 200, one.slice(0, 20));
      }
      await assertServes(service, holder);
    });
  });
});

/** Many addresses, each with one guess, over a few connections. */
async function guessFromMany(url: string, addresses: readonly string[]): Promise<number> {
  let refused = 0;
  const batch = limits.pipelinedRequestsMax;
  for (let at = 0; at < addresses.length; at += batch) {
    const part = addresses.slice(at, at + batch);
    const bytes = part.map((address, i) =>
      writeRequest({
        path: '/traces',
        key: 'guess',
        headers: [`x-forwarded-for: ${address}`],
        isLast: i === part.length - 1,
      }),
    );
    const answered = (await exchange(url, bytes.join(''))).toString('latin1');
    refused += answered.split('HTTP/1.1 401 ').length - 1;
  }
  return refused;
}

function memoryMb(): { heap: number; resident: number } {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let i = 0; i < 3; i++) collect();
  const { heapUsed, rss } = process.memoryUsage();
  return { heap: heapUsed / 2 ** 20, resident: rss / 2 ** 20 };
}

function addressNo(i: number): string {
  return `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;
}

test('guesses from 20,000 more addresses hold no more memory than those from the first 6,000', async (t) => {
  await withService({ ...proxied, 'log-level': 'silent' }, async ({ url }) => {
    const addresses = Array.from({ length: 26_000 }, (_, i) => addressNo(i));
    assert.equal(await guessFromMany(url, addresses.slice(0, 6_000)), 6_000);
    const before = memoryMb();
    assert.equal(await guessFromMany(url, addresses.slice(6_000)), 20_000);
    const after = memoryMb();
    const grown = after.heap - before.heap;
    t.diagnostic(
      `heap ${before.heap.toFixed(1)} MB, then ${grown.toFixed(2)} MB more; ` +
        `resident ${before.resident.toFixed(0)} MB, then ${(after.resident - before.resident).toFixed(1)} MB more`,
    );
    assert.ok(grown < 2, `the heap grew by ${grown.toFixed(2)} MB`);
  });
});
