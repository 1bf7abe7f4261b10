import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { hashKey } from '../../src/core/api-key.ts';
import { generateSignInCode } from '../../src/core/sign-in-code.ts';
import { limits } from '../../src/limits.ts';
import { makeSignInCode } from '../../src/store/sign-in.ts';
import { eventually } from '../support/eventually.ts';
import { startTestService, temporaryFolder } from '../support/service.ts';
import type { Answer, TestService } from '../support/service.ts';
import { assertProblem, startBrokenService } from './helpers.ts';
import {
  cookieOf,
  newCode,
  postSession,
  readWith,
  signIn,
  withService,
  withSession,
} from './session-helpers.ts';

let service: TestService;
before(async () => {
  service = await startTestService({ flags: { 'trust-proxy': '127.0.0.1' } });
});
after(() => service.stop());

function read(cookie: string, team = 'any', from = service): Promise<Answer> {
  return readWith(from, cookie, team);
}

describe('signing in', () => {
  test('a key starts a session that reads its team, in a cookie that no script sees and no other site sends', async () => {
    const { key, keyId, team, teamId } = await service.keyFor();
    await service.call(key, 'POST', '/traces', { model: 'of-the-team' });
    const beforeMs = Date.now();
    const answer = await postSession(service, { body: { key } });
    assert.equal(answer.status, 201);
    const { expires_at: expiresAt, ...rest } = answer.json;
    assert.deepEqual(rest, { team: { id: teamId, name: team, time_zone: 'UTC' }, scope: 'read' });
    const startedMs = Date.parse(expiresAt) - limits.sessionLifeMs;
    assert.ok(startedMs >= beforeMs - 1 && startedMs <= Date.now() + 1, expiresAt);
    const set = answer.headers.get('set-cookie') ?? '';
    assert.match(
      set,
      /^tracetally-[\w-]{12}=[\w.-]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
    );
    for (const secret of [key, key.slice(9), hashKey(key)]) assert.ok(!set.includes(secret));

    const page = await read(cookieOf(answer));
    assert.equal(page.status, 200);
    assert.equal(page.json.traces[0].model, 'of-the-team');
    const headers = withSession(cookieOf(answer), teamId);
    const current = await service.call(null, 'GET', '/session', undefined, headers);
    assert.deepEqual([current.status, current.json], [200, answer.json]);
    const lastUse = async () => (await service.beside.findKey(keyId))?.lastUsedAtUs;
    await eventually('the last use of the key', 120_000, lastUse, 20);
  });

  test('a code starts the session of its key, and works once', async () => {
    const { keyId, team, teamId } = await service.keyFor();
    const code = await newCode(service, keyId);
    const tries = Array.from({ length: 10 }, () => postSession(service, { body: { code } }));
    const answers = await Promise.all(tries);
    const [entered, ...more] = answers.filter(({ status }) => status === 201);
    assert.ok(entered && more.length === 0, answers.map(({ status }) => status).join());
    assert.deepEqual(entered.json.team, { id: teamId, name: team, time_zone: 'UTC' });
    assert.equal((await read(cookieOf(entered), teamId)).status, 200);
    assertProblem(await postSession(service, { body: { code } }), 'sign_in_code_invalid');
  });

  test('of two requests that find the same code at the same moment, one signs in', async () => {
    const { code, record } = makeSignInCode('', Date.now() * 1000);
    let finds = 0;
    let meet = (): void => {};
    const bothFound = new Promise<void>((resolve) => (meet = resolve));
    const broken = await startBrokenService((sound) => ({
      async findSignInCode(hash, nowUs) {
        const [key] = await sound.keys(null);
        if (++finds === 1) await sound.addSignInCode({ ...record, keyId: key?.id ?? '' }, nowUs);
        if (finds === 2) meet();
        await bothFound;
        return sound.findSignInCode(hash, nowUs);
      },
    }));
    try {
      const tries = [1, 2].map(() => postSession(broken, { body: { code } }));
      const answers = await Promise.all(tries);
      assert.deepEqual(
        answers.map(({ status }) => status).toSorted((a, b) => a - b),
        [201, 401],
      );
    } finally {
      await broken.stop();
    }
  });

  test('a preview names the team of a code and does not use it up', async () => {
    const { keyId, team, teamId } = await service.keyFor();
    const code = await newCode(service, keyId);
    for (let i = 0; i < 3; i++) {
      const answer = await postSession(service, { body: { code }, path: '/session/preview' });
      assert.equal(answer.status, 200, answer.text);
      assert.deepEqual(answer.json, { team: { id: teamId, name: team } });
      assert.equal(answer.headers.get('set-cookie'), null);
    }
    assert.equal((await postSession(service, { body: { code } })).status, 201);
    const used = await postSession(service, { body: { code }, path: '/session/preview' });
    assertProblem(used, 'sign_in_code_invalid');
  });

  test('a key or code that may not read starts no session', async () => {
    const recorder = await service.keyFor('refused', { scope: 'ingest' });
    const revoked = await service.keyFor('refused');
    const expired = await service.keyFor('refused', { expiresAtUs: Date.now() * 1000 - 1 });
    await service.beside.revokeKey(revoked.keyId, Date.now() * 1000);
    for (const [{ key, keyId }, code] of [
      [recorder, 'scope_missing'],
      [revoked, 'key_revoked'],
      [expired, 'key_expired'],
    ] as const) {
      const byCode = { code: await newCode(service, keyId) };
      for (const [body, path] of [
        [{ key }, '/session'],
        [byCode, '/session'],
        [byCode, '/session/preview'],
      ] as const) {
        const answer = await postSession(service, { body, path });
        assertProblem(answer, code);
        assert.equal(answer.headers.get('set-cookie'), null);
      }
    }
  });

  test('the key of the environment signs in, and its sessions end with it', async () => {
    const folder = temporaryFolder();
    const key = 'operator/chosen+text=1234';
    const start = (value: string, work: (other: TestService) => Promise<void>) =>
      withService({ folder: folder.path, env: { TRACETALLY_API_KEY: value } }, work);
    try {
      let cookie = '';
      await start(key, async (other) => {
        const answer = await postSession(other, { body: { key } });
        assert.equal(answer.json.team.name, 'default');
        cookie = cookieOf(answer);
        assert.equal((await read(cookie, 'any', other)).status, 200);
      });
      await start(key, async (other) => {
        assert.equal((await read(cookie, 'any', other)).status, 200, 'after a restart');
      });
      await start(`${key}5`, async (other) => {
        assertProblem(await read(cookie, 'any', other), 'not_signed_in');
      });
    } finally {
      folder.remove();
    }
  });

  test('failed sign-ins count as failed attempts of the address, whatever is tried', async () => {
    await withService({}, async (other) => {
      const { key } = await other.keyFor();
      const tries = [
        { body: { key: `${key}0` } },
        { body: { code: generateSignInCode() } },
        { body: { code: generateSignInCode() }, path: '/session/preview' },
      ];
      const attempt = (i: number) => postSession(other, tries[i % 3] ?? assert.fail());
      for (let i = 0; i < limits.authFailuresPerMinuteMax; i++) {
        assert.equal((await attempt(i)).status, 401, `try ${i}`);
      }
      for (let i = 0; i < 6; i++) assertProblem(await attempt(i), 'too_many_failed_attempts');
      assert.equal((await postSession(other, { body: { key } })).status, 201, 'a good key still');
    });
  });

  test('asking for the session without being signed in uses up no attempts', async () => {
    await withService({}, async (other) => {
      for (let i = 0; i <= limits.authFailuresPerMinuteMax; i++) {
        const headers = { 'x-tracetally-dashboard': 'any' };
        const answer = await other.call(null, 'GET', '/session', undefined, headers);
        assertProblem(answer, 'not_signed_in');
      }
    });
  });
});

test('no key, code or cookie of a sign-in is logged or stored in clear', async () => {
  const { key, keyId } = await service.keyFor();
  const code = await newCode(service, keyId);
  const cookie = await signIn(service, key);
  const secrets = [key, code, cookie.split('=')[1] ?? assert.fail()];
  await postSession(service, { body: { code }, path: '/session/preview' });
  const byCode = cookieOf(await postSession(service, { body: { code } }));
  await read(byCode);
  for (const forged of [`${cookie}x`, `${byCode}x`]) await read(forged);
  for (const body of [{ code }, { key: `${key}x` }, { code: `${code}x` }, { key, code }]) {
    const answer = await postSession(service, { body });
    assert.ok(answer.status >= 400);
    for (const secret of secrets) assert.ok(!answer.text.includes(secret), 'repeated');
  }
  const bytes = await service.bytesOnDisk();
  assert.ok(bytes.includes(keyId));
  for (const secret of secrets) {
    assert.ok(!service.log().includes(secret), 'logged');
    assert.ok(!bytes.includes(secret), 'stored');
  }
});
