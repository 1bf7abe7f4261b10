import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { manualClock, startTestService, temporaryFolder, us } from '../support/service.ts';
import type { Answer, TestService } from '../support/service.ts';
import type { ErrorCode } from '../../src/errors.ts';
import { limits } from '../../src/limits.ts';
import { testStore } from '../support/store-place.ts';
import { assertProblem, bearer, send, startBrokenService } from './helpers.ts';
import {
  cookieOf,
  newCode,
  postSession,
  readWith,
  signIn,
  signOut,
  withService,
  withSession,
} from './session-helpers.ts';

let service: TestService;
before(async () => {
  service = await startTestService({ flags: { 'trust-proxy': '127.0.0.1' } });
});
after(() => service.stop());

const hourUs = 3_600_000_000;

function read(cookie: string, team = 'any', from = service): Promise<Answer> {
  return readWith(from, cookie, team);
}

/** Asserts that a session that has just been ended is refused within a second, and from then on. */
async function assertEnds(from: TestService, cookie: string, code: ErrorCode): Promise<void> {
  const endedAtMs = performance.now();
  let isRefused = false;
  await eventually('the refusal of the session', 120_000, async () => {
    const askedAfterMs = performance.now() - endedAtMs;
    const answer = await read(cookie, 'any', from);
    if (answer.status === 200) {
      assert.ok(!isRefused, 'it worked again');
      assert.ok(askedAfterMs < 1_000, `it worked ${askedAfterMs} ms after its end`);
    } else {
      assertProblem(answer, code);
      isRefused = true;
    }
    return isRefused && askedAfterMs > 1_200;
  });
}

describe('a session ends', () => {
  test('within a second after its key is revoked, for good', async () => {
    const { key, keyId } = await service.keyFor();
    const cookie = await signIn(service, key);
    for (let i = 0; i < 3; i++) assert.equal((await read(cookie)).status, 200);
    await service.beside.revokeKey(keyId, Date.now() * 1000);
    await assertEnds(service, cookie, 'key_revoked');
  });

  test('after 12 hours, and with its key if that expires earlier', async () => {
    const startUs = us('2026-11-04T12:00:00Z');
    const clock = manualClock(startUs);
    await withService({ clock }, async (other) => {
      const [lasting, brief] = [
        await other.keyFor('lasting'),
        await other.keyFor('brief', { expiresAtUs: startUs + hourUs }),
      ];
      const longCookie = await signIn(other, lasting.key);
      const answer = await postSession(other, { body: { key: brief.key } });
      assert.match(answer.headers.get('set-cookie') ?? '', /; Max-Age=3600;/);
      assert.equal(answer.json.expires_at, '2026-11-04T13:00:00.000000Z');
      const code = await newCode(other, lasting.keyId, startUs);

      clock.set(startUs + hourUs - 1);
      assert.equal((await read(cookieOf(answer), 'any', other)).status, 200);
      assertProblem(await postSession(other, { body: { code } }), 'sign_in_code_invalid');
      clock.set(startUs + hourUs);
      assertProblem(await read(cookieOf(answer), 'any', other), 'key_expired');
      clock.set(startUs + 12 * hourUs - 1);
      assert.equal((await read(longCookie, 'any', other)).status, 200);
      clock.set(startUs + 12 * hourUs);
      assertProblem(await read(longCookie, 'any', other), 'not_signed_in');
    });
  });

  test('when it is signed out: the reply deletes the cookie', async () => {
    const { key } = await service.keyFor();
    const cookie = await signIn(service, key);
    const answer = await service.call(null, 'DELETE', '/session', undefined, withSession(cookie));
    assert.equal(answer.status, 204);
    const [name] = cookie.split('=');
    assert.equal(
      answer.headers.get('set-cookie'),
      `${name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict`,
    );
  });

  test('within a second after it is signed out, on every server, also after a restart', async () => {
    const folder = temporaryFolder();
    const start = () => startTestService({ folder: folder.path });
    const first = await start();
    // Only one server can use a file.
    const second = testStore === 'postgres' ? await start() : null;
    const servers = second === null ? [first] : [first, second];
    try {
      const cookie = await signIn(first, (await first.keyFor()).key);
      for (const server of servers) assert.equal((await read(cookie, 'any', server)).status, 200);
      assert.equal((await signOut(servers.at(-1) ?? first, cookie)).status, 204);
      await Promise.all(servers.map((server) => assertEnds(server, cookie, 'not_signed_in')));
      for (const server of servers.splice(0)) await server.stop();
      await withService({ folder: folder.path }, async (restarted) => {
        assertProblem(await read(cookie, 'any', restarted), 'not_signed_in');
      });
    } finally {
      for (const server of servers) await server.stop();
      folder.remove();
    }
  });

  test('alone: others of the same key go on, also if all of them end with the key', async () => {
    const { key } = await service.keyFor('brief', { expiresAtUs: Date.now() * 1000 + hourUs });
    const [ended, other] = [await signIn(service, key), await signIn(service, key)];
    await signOut(service, ended);
    await assertEnds(service, ended, 'not_signed_in');
    for (const cookie of [other, await signIn(service, key)]) {
      assert.equal((await read(cookie)).status, 200);
    }
  });

  test('for a page that shows another team, so that no tab mixes two teams', async () => {
    const [a, b] = [await service.keyFor(), await service.keyFor()];
    const cookie = await signIn(service, b.key);
    assert.equal((await read(cookie, b.teamId)).status, 200);
    assertProblem(await read(cookie, a.teamId), 'not_signed_in');
    assertProblem(await read(cookie, ''), 'not_signed_in');
  });
});

describe('a session', () => {
  test('says in which time zone the days of the team begin, also after it has changed', async () => {
    const { teamId, team, key } = await service.keyFor();
    const started = await postSession(service, { body: { key } });
    assert.deepEqual(started.json.team, { id: teamId, name: team, time_zone: 'UTC' });
    await service.beside.rebuild(teamId, 'Asia/Kathmandu');
    const headers = withSession(cookieOf(started));
    const { json } = await service.call(null, 'GET', '/session', undefined, headers);
    assert.equal(json.team.time_zone, 'Asia/Kathmandu');
  });
});

describe('a sign-out', () => {
  const countEnded = async (from: TestService) =>
    Number((await from.sql('select count(*) as n from ended_sessions'))[0]?.['n']);

  test('is stored once for each session, and not at all for a cookie that is not valid', async () => {
    const startUs = us('2026-11-04T12:00:00Z');
    const clock = manualClock(startUs);
    await withService({ clock }, async (other) => {
      const { key } = await other.keyFor();
      const [cookie, late] = [await signIn(other, key), await signIn(other, key)];
      for (let i = 0; i < 20; i++) {
        for (const sent of [`${cookie}x`, cookie.replace('=', '=x'), cookie.replace('=', '-x=')]) {
          assert.equal((await signOut(other, sent)).status, 204);
        }
      }
      assert.equal(await countEnded(other), 0);
      const many = Array.from({ length: 10 }, () => signOut(other, cookie));
      for (const { status } of await Promise.all(many)) assert.equal(status, 204);
      assert.equal((await signOut(other, cookie)).status, 204);
      assert.equal(await countEnded(other), 1);
      clock.set(startUs + 12 * hourUs);
      assert.equal((await signOut(other, late)).status, 204);
      assert.equal(await countEnded(other), 1);
    });
  });

  test('removes the cookie even if the store fails, and says that it failed', async () => {
    const broken = await startBrokenService({
      endSession: () => Promise.reject(new Error('on purpose')),
    });
    try {
      const answer = await signOut(broken, await signIn(broken, broken.key));
      assertProblem(answer, 'internal');
    } finally {
      await broken.stop();
    }
  });

  test('cannot be repeated without end: the sign-ins of a key are limited', async () => {
    const [{ key }, other] = [await service.keyFor(), await service.keyFor()];
    for (let i = 0; i < limits.signInsPerMinuteMax; i++) await signIn(service, key);
    const refused = await postSession(service, { body: { key } });
    assertProblem(refused, 'rate_limited');
    assert.equal(refused.headers.get('set-cookie'), null);
    await signIn(service, other.key);
  });
});

describe('a session cookie', () => {
  test('may only read, also when its key has the scope "full"', async () => {
    const { key } = await service.keyFor();
    const headers = withSession(await signIn(service, key));
    for (const path of ['/traces', '/traces/batch']) {
      const answer = await service.call(null, 'POST', path, { model: 'm' }, headers);
      assertProblem(answer, 'scope_missing');
    }
    assert.equal((await service.call(key, 'GET', '/traces')).json.total, 0);
  });

  test('that was changed in any part, or was made for another key, is refused', async () => {
    const [own, other] = [await service.keyFor(), await service.keyFor()];
    const cookie = await signIn(service, own.key);
    const [name = '', value = ''] = cookie.split('=');
    const [keyId = '', endsAtUs = '', id = '', mark = '', seal = ''] = value.split('.');
    assert.equal(keyId, own.keyId);
    const [, , otherId, otherMark, otherSeal] = (await signIn(service, other.key)).split('.');
    const flip = (text: string) => `${text.startsWith('A') ? 'B' : 'A'}${text.slice(1)}`;
    for (const forged of [
      `${other.keyId}.${endsAtUs}.${id}.${mark}.${seal}`,
      `${other.keyId}.${endsAtUs}.${otherId}.${otherMark}.${seal}`,
      `${keyId}.${endsAtUs}.${id}.${mark}.${otherSeal}`,
      `${keyId}.${Number(endsAtUs) + 1}.${id}.${mark}.${seal}`,
      `${keyId}.${endsAtUs}.${flip(id)}.${mark}.${seal}`,
      `${keyId}.${endsAtUs}.${otherId}.${mark}.${seal}`,
      `${keyId}.${endsAtUs}.${id}.${flip(mark)}.${seal}`,
      `${keyId}.${endsAtUs}.${id}.${mark}.${flip(seal)}`,
      `${keyId}.${endsAtUs}.${id}.${mark}.${seal.slice(0, -1)}`,
      `${keyId}.${endsAtUs}.${id}.${mark}.`,
      `environment.${endsAtUs}.${id}.${mark}.${seal}`,
      `${keyId}.${endsAtUs}.${mark}.${seal}`,
      `${keyId}.${endsAtUs}`,
      own.key,
      '',
      '..',
    ]) {
      assertProblem(await read(`${name}=${forged}`), 'not_signed_in');
    }
    assert.equal((await read(`a=b; ${cookie}; c=d`)).status, 200);
    assertProblem(await read(cookie.replace('=', '-x=')), 'not_signed_in');
    // The seal holds the hash of the key: another key with the same id does not inherit the session.
    await service.sql(`update api_keys set hash = '${'0'.repeat(64)}' where id = '${keyId}'`);
    const refused = await eventually('the end of the session', 120_000, async () => {
      const answer = await read(cookie);
      return answer.status === 200 ? null : answer;
    });
    assertProblem(refused, 'not_signed_in');
  });

  test('is ignored without the header that only the dashboard sends', async () => {
    const { key } = await service.keyFor();
    const cookie = await signIn(service, key);
    for (const path of ['/traces', '/analytics/overview']) {
      const answer = await service.call(null, 'GET', path, undefined, { cookie });
      assertProblem(answer, 'key_missing');
    }
    const current = await service.call(null, 'GET', '/session', undefined, { cookie });
    assertProblem(current, 'not_signed_in');
  });

  test('is ignored if there is an Authorization header, valid or not', async () => {
    const [own, other] = [await service.keyFor(), await service.keyFor()];
    await service.call(other.key, 'POST', '/traces', { model: 'of-the-other' });
    const headers = withSession(await signIn(service, own.key));
    const page = await service.call(other.key, 'GET', '/traces', undefined, headers);
    assert.equal(page.json.total, 1);
    for (const authorization of ['', 'Basic x', `Bearer ${own.key}0`]) {
      const path = '/traces';
      const answer = await send(service.url, { path, headers: { ...headers, authorization } });
      assert.equal(answer.status, 401, authorization);
    }
  });

  test('has the name and path of its installation, survives a restart, and is invalid at other installations', async () => {
    const folder = temporaryFolder();
    try {
      let cookie = '';
      const flags = { 'base-path': '/v1' };
      await withService({ folder: folder.path, flags }, async (other) => {
        const { key } = await other.keyFor();
        const answer = await postSession(other, { body: { key } });
        assert.match(answer.headers.get('set-cookie') ?? '', /; Path=\/v1; /);
        cookie = cookieOf(answer);
      });
      await withService({ folder: folder.path, flags }, async (other) => {
        assert.equal((await read(cookie, 'any', other)).status, 200);
      });
      const here = await signIn(service, (await service.keyFor()).key);
      const [name = '', value = ''] = cookie.split('=');
      const [nameHere = ''] = here.split('=');
      assert.notEqual(name, nameHere);
      assertProblem(await read(`${nameHere}=${value}`), 'not_signed_in');
    } finally {
      folder.remove();
    }
  });

  test('is for TLS only when the request came over TLS, as a trusted proxy says', async () => {
    const forwarded = { 'x-forwarded-proto': 'https', 'x-forwarded-for': '10.0.0.1' };
    const { key } = await service.keyFor();
    const trusted = await postSession(service, { body: { key }, headers: forwarded });
    assert.match(trusted.headers.get('set-cookie') ?? '', /; HttpOnly; SameSite=Strict; Secure$/);
    await withService({}, async (other) => {
      const body = { key: (await other.keyFor()).key };
      const untrusted = await postSession(other, { body, headers: forwarded });
      assert.doesNotMatch(untrusted.headers.get('set-cookie') ?? '', /Secure/);
    });
  });
});

describe('a page of another origin', () => {
  test('cannot sign in, preview a code or sign out: the browser sends the origin of the request', async () => {
    const { key, keyId } = await service.keyFor();
    const code = await newCode(service, keyId);
    for (const site of ['cross-site', 'same-site', 'anything else']) {
      const headers = { 'sec-fetch-site': site };
      for (const [body, path] of [
        [{ key }, '/session'],
        [{ code }, '/session'],
        [{ code }, '/session/preview'],
      ] as const) {
        const answer = await postSession(service, { body, path, headers });
        assertProblem(answer, 'cross_site_request');
        assert.equal(answer.headers.get('set-cookie'), null);
      }
      const out = await send(service.url, { method: 'DELETE', path: '/session', headers });
      assertProblem(out, 'cross_site_request');
    }
    for (const site of ['same-origin', 'none']) {
      const headers = { 'sec-fetch-site': site };
      assert.equal((await postSession(service, { body: { key }, headers })).status, 201);
    }
  });

  test('cannot send a form that signs in: only JSON is read', async () => {
    const { key } = await service.keyFor();
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
    ]) {
      const answer = await postSession(service, {
        body: { key },
        headers: { 'content-type': type },
      });
      assertProblem(answer, 'unsupported_media_type');
      assert.equal(answer.headers.get('set-cookie'), null);
    }
  });

  test('gets no CORS header in any reply', async () => {
    const { key } = await service.keyFor();
    const cookie = await signIn(service, key);
    const origin = { origin: 'http://evil.example' };
    const asked = {
      ...origin,
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'x-tracetally-dashboard',
    };
    for (const [method, path, headers] of [
      ['OPTIONS', '/traces', asked],
      ['OPTIONS', '/session', asked],
      ['GET', '/traces', { ...origin, ...withSession(cookie) }],
      ['GET', '/session', { ...origin, ...withSession(cookie) }],
      ['GET', '/traces', { ...origin, ...bearer(key) }],
    ] as const) {
      const answer = await send(service.url, { method, path, headers });
      const granted = [...answer.headers.keys()].filter((name) =>
        name.startsWith('access-control'),
      );
      assert.deepEqual(granted, [], `${method} ${path}`);
      if (method === 'OPTIONS') assert.equal(answer.status, 405);
    }
  });
});
