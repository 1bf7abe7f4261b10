import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../src/limits.ts';
import { eventually } from '../support/eventually.ts';
import { assertRefused, call, postTrace, startServer, toolInFolder } from './helpers.ts';
import type { NewKeyJson } from './helpers.ts';

const tool = toolInFolder({ after });
const server = await startServer({ after }, tool);

interface ListedKey {
  key_id: string;
  team: string;
  prefix: string;
  name: string | null;
  scope: string;
  state: string;
  created: string;
  expires: string | null;
  last_used: string | null;
}

async function listed(keyId: string): Promise<ListedKey> {
  const key = (await tool.json<ListedKey[]>('keys', 'list')).find((k) => k.key_id === keyId);
  assert.ok(key, `${keyId} is not listed`);
  return key;
}

/** When a key was last used with success from now on, asked every 50 ms, and the error code that it gets then. */
async function msUntilRefused(key: string): Promise<{ ms: number; code: string }> {
  const startMs = performance.now();
  let ms = 0;
  const code = await eventually('the refusal', 120_000, async () => {
    const askedAfterMs = performance.now() - startMs;
    const { status, body } = await call(`${server.url}/analytics/overview`, key);
    if (status === 200) {
      ms = askedAfterMs;
      return null;
    }
    assert.equal(status, 401);
    return body.code;
  });
  return { ms, code };
}

// Two at a time: most of the time goes into starting commands, and there are two cores.
describe('keys and teams while a server runs', { concurrency: 2 }, () => {
  test('keys create --json prints exactly one object, and the key works at once', async () => {
    const result = await tool.run('keys', 'create', '--team', 'one', '--name', 'web', '--json');
    assert.equal(result.code, 0);
    assert.match(result.stdout, /^\{[^\n]*\}\n$/);
    const made = JSON.parse(result.stdout) as NewKeyJson;
    assert.deepEqual(Object.keys(made).sort(), [
      'expires',
      'key',
      'key_id',
      'name',
      'scope',
      'team',
      'team_id',
    ]);
    assert.match(made.key, /^tt_[0-9A-Za-z]{36}$/);
    assert.deepEqual(
      [made.team, made.scope, made.name, made.expires],
      ['one', 'full', 'web', null],
    );
    const { status, body } = await postTrace(server.url, made.key);
    assert.equal(status, 201);
    assert.equal(body.team_id, made.team_id);
  });

  test('without --json the key alone is on stdout', async () => {
    const result = await tool.run('keys', 'create', '--team', 'plain');
    assert.equal(result.code, 0);
    assert.match(result.stdout, /^tt_[0-9A-Za-z]{36}\n$/);
    assert.ok(!result.stderr.includes(result.stdout.trim()), 'the key is on stderr as well');
    assert.equal((await postTrace(server.url, result.stdout.trim())).status, 201);
  });

  test('keys create makes a team once and then adds keys to it', async () => {
    const first = await tool.run('keys', 'create', '--team', 'Zwölf ☂', '--json');
    const second = await tool.run('keys', 'create', '--team', 'Zwölf ☂', '--json');
    assert.match(first.stderr, /Created the team "Zwölf ☂"/);
    assert.doesNotMatch(second.stderr, /Created the team/);
    const [a, b] = [first, second].map(({ stdout }) => JSON.parse(stdout) as NewKeyJson);
    assert.equal(a?.team_id, b?.team_id);
    assert.notEqual(a?.key, b?.key);
    const teams = await tool.json<{ team: string; live_keys: number }[]>('teams', 'list');
    assert.deepEqual(
      teams.filter(({ team }) => team === 'Zwölf ☂').map(({ live_keys }) => live_keys),
      [2],
    );
  });

  test('a key may do what its scope says and no more', async () => {
    const allowed: Record<string, { post: number; get: number }> = {
      ingest: { post: 201, get: 403 },
      read: { post: 403, get: 200 },
      full: { post: 201, get: 200 },
    };
    for (const [scope, expected] of Object.entries(allowed)) {
      const made = await tool.json<NewKeyJson>('keys', 'create', '--team', 's', '--scope', scope);
      assert.equal(made.scope, scope);
      const post = await postTrace(server.url, made.key);
      const get = await call(`${server.url}/traces`, made.key);
      assert.deepEqual({ post: post.status, get: get.status }, expected, scope);
    }
  });

  test('a key with --expires 3s works until its time and not after', async () => {
    let accepted = 0;
    // A very busy machine may need more than three seconds for the first use.
    for (const lifeS of [3, 10, 30]) {
      const expires = ['--expires', `${lifeS}s`];
      const made = await tool.json<NewKeyJson>('keys', 'create', '--team', 'e', ...expires);
      const endMs = Date.parse(made.expires ?? '');
      assert.ok(endMs - Date.now() <= 1_000 * lifeS, `it expires at ${made.expires}`);
      for (;;) {
        const askedMs = Date.now();
        const { status, body } = await postTrace(server.url, made.key);
        if (Date.now() < endMs) assert.equal(status, 201, 'refused before its time');
        if (askedMs > endMs) assert.equal(status, 401, 'accepted after its time');
        if (status === 401) {
          assert.equal(body.code, 'key_expired');
          break;
        }
        accepted += 1;
        await sleep(50);
      }
      assert.equal((await listed(made.key_id)).state, 'expired');
      if (accepted > 0) break;
    }
    assert.ok(accepted > 0, 'it never worked');
  });

  test('after a rotation both keys work, and the new one is like the old one', async () => {
    const create = ['keys', 'create', '--team', 'r', '--name', 'batch', '--scope', 'ingest'];
    const createdMs = Date.now();
    const old = await tool.json<NewKeyJson>(...create, '--expires', '90d');
    const rotatedMs = Date.now();
    const fresh = await tool.json<NewKeyJson>('keys', 'rotate', old.key_id, '--overlap', '1h');
    const doneMs = Date.now();
    assert.notEqual(fresh.key, old.key);
    assert.notEqual(fresh.key_id, old.key_id);
    const { key: _a, key_id: _b, expires: oldEnd, ...kept } = old;
    const { key: _c, key_id: _d, expires: freshEnd, ...inherited } = fresh;
    assert.deepEqual(inherited, kept);
    const laterMs = Date.parse(freshEnd ?? '') - Date.parse(oldEnd ?? '');
    const isAsLong = laterMs > 0 && laterMs <= doneMs - createdMs + 1;
    assert.ok(isAsLong, 'the new key does not live as long as the old one');

    // Longer than the server caches a key, so that it asks the store about both.
    await sleep(limits.keyCacheTtlMs + 100);
    assert.equal((await postTrace(server.url, old.key)).status, 201);
    assert.equal((await postTrace(server.url, fresh.key)).status, 201);
    const { expires: oldExpires } = await listed(old.key_id);
    const overlapFromMs = Date.parse(oldExpires ?? '') - 3_600_000;
    assert.ok(overlapFromMs >= rotatedMs - 1 && overlapFromMs <= doneMs + 1, `${oldExpires}`);
  });

  test('rotating with --overlap 0s ends the old key within a second', async () => {
    const old = await tool.json<NewKeyJson>('keys', 'create', '--team', 'r');
    assert.equal((await postTrace(server.url, old.key)).status, 201);
    const fresh = await tool.json<NewKeyJson>('keys', 'rotate', old.key_id, '--overlap', '0s');
    const { ms, code } = await msUntilRefused(old.key);
    assert.ok(ms <= 1000, `the old key went on for ${ms} ms`);
    assert.equal(code, 'key_expired');
    assert.equal((await postTrace(server.url, fresh.key)).status, 201);
  });

  test('a key that was rotated before never gives a key that dies with the overlap', async () => {
    const old = await tool.json<NewKeyJson>('keys', 'create', '--team', 'r2');
    await tool.json<NewKeyJson>('keys', 'rotate', old.key_id, '--overlap', '1h');
    const again = await tool.run('keys', 'rotate', old.key_id, '--overlap', '1h', '--json');
    if (again.code === 0) {
      assert.equal((JSON.parse(again.stdout) as NewKeyJson).expires, null);
    } else {
      assertRefused(again, 1, /rotated/);
    }
  });

  test('a revoked key is refused within a second, and revoking it again is harmless', async () => {
    const made = await tool.json<NewKeyJson>('keys', 'create', '--team', 'v');
    const other = await tool.json<NewKeyJson>('keys', 'create', '--team', 'v');
    // Used again and again, so that the server holds it in its cache.
    let isRevoking = true;
    const use = (async () => {
      while (isRevoking) {
        await call(`${server.url}/analytics/overview`, other.key);
        await call(`${server.url}/analytics/overview`, made.key);
        await sleep(100);
      }
    })();
    const revoked = await tool.run('keys', 'revoke', made.key_id);
    isRevoking = false;
    const { ms, code } = await msUntilRefused(made.key);
    await use;
    assert.equal(revoked.code, 0);
    assert.ok(ms <= 1000, `accepted ${ms} ms after the command had ended`);
    assert.equal(code, 'key_revoked');
    assert.equal((await postTrace(server.url, other.key)).status, 201, 'another key suffers');

    const [twice, state] = [
      await tool.json<{ key_id: string; revoked: boolean }>('keys', 'revoke', made.key_id),
      (await listed(made.key_id)).state,
    ];
    assert.deepEqual(twice, { key_id: made.key_id, revoked: true });
    assert.equal(state, 'revoked');
    assertRefused(await tool.run('keys', 'rotate', made.key_id), 1, /revoked/);
  });

  test('to revoke or rotate a key that does not exist is an error', async () => {
    assertRefused(await tool.run('keys', 'revoke', 'key_nosuchkey0'), 1, /no key "key_nosuchkey0"/);
    assertRefused(await tool.run('keys', 'rotate', 'key_nosuchkey0'), 1, /no key "key_nosuchkey0"/);
  });

  test('a key that is given in place of its id is not repeated', async () => {
    const { key } = await tool.json<NewKeyJson>('keys', 'create', '--team', 'pasted');
    for (const args of [
      ['keys', 'revoke', key],
      ['keys', 'rotate', key],
      ['sign-in', '--key-id', key],
    ]) {
      const refused = await tool.run(...args);
      assertRefused(refused, 1, /^Specify the id of the key, not the key itself\..*keys list/);
      assert.ok(!refused.stderr.includes(key));
    }
  });

  test('keys list shows what distinguishes keys, but never a key or its hash', async () => {
    const a = await tool.json<NewKeyJson>('keys', 'create', '--team', 'l', '--name', 'first one');
    const b = await tool.json<NewKeyJson>('keys', 'create', '--team', 'l', '--scope', 'read');
    const table = await tool.run('keys', 'list', '--team', 'l');
    const json = await tool.run('keys', 'list', '--team', 'l', '--json');
    const lines = table.stdout.trimEnd().split('\n');
    assert.equal(lines.length, 3);
    for (const heading of ['PREFIX', 'NAME', 'SCOPE', 'CREATED', 'LAST USED']) {
      assert.ok(lines[0]?.includes(heading), `${heading} is missing`);
    }
    for (const [made, words] of [
      [a, ['first one', 'full', 'live']],
      [b, ['read', 'live']],
    ] as const) {
      const line = lines.find((text) => text.includes(made.key_id));
      for (const word of [...words, made.key.slice(0, 9)]) assert.ok(line?.includes(word), word);
      const hash = createHash('sha256').update(made.key).digest('hex');
      for (const output of [table.stdout, table.stderr, json.stdout, json.stderr]) {
        assert.ok(!output.includes(made.key.slice(0, 12)), 'it shows more than the prefix');
        assert.ok(!output.includes(made.key.slice(-6)), 'it shows the end of a key');
        assert.ok(!output.includes(hash.slice(0, 12)), 'it shows the hash');
      }
    }
    const team = await tool.json<ListedKey[]>('keys', 'list', '--team', 'l');
    assert.deepEqual(
      team.map(({ key_id }) => key_id),
      [a.key_id, b.key_id],
    );
  });

  test('no file of the store holds a key', async () => {
    const made = await tool.json<NewKeyJson>('keys', 'create', '--team', 'f');
    assert.equal((await postTrace(server.url, made.key)).status, 201);
    const bytes = ['', '-wal'].map((end) => readFileSync(`${tool.path}${end}`).toString('latin1'));
    assert.ok(bytes.join('').includes(made.key_id), 'this test looks in the wrong place');
    assert.ok(!bytes.join('').includes(made.key.slice(9)));
    assert.ok(!server.stderr().includes(made.key.slice(9)));
  });

  test('the last use of a key is stored soon, at most once per minute', async () => {
    const made = await tool.json<NewKeyJson>('keys', 'create', '--team', 'u');
    assert.equal((await listed(made.key_id)).last_used, null);
    const beforeMs = Date.now();
    assert.equal((await postTrace(server.url, made.key)).status, 201);
    const afterMs = Date.now();
    const noted = await eventually(
      'the last use of the key',
      120_000,
      async () => (await listed(made.key_id)).last_used,
    );
    assert.ok(Date.parse(noted) >= beforeMs - 1 && Date.parse(noted) <= afterMs, noted);
    // Each use comes after the key has left the server's cache, so each asks the store again.
    for (let i = 0; i < 3; i++) {
      await sleep(limits.keyCacheTtlMs + 50);
      assert.equal((await postTrace(server.url, made.key)).status, 201);
    }
    // Time for a second note, which must not come.
    await sleep(200);
    assert.equal((await listed(made.key_id)).last_used, noted);
  });

  test('teams list counts traces and live keys', async () => {
    const team = await tool.json<{ team_id: string; team: string }>('teams', 'create', 'counted');
    const keys = [
      await tool.json<NewKeyJson>('keys', 'create', '--team', 'counted'),
      await tool.json<NewKeyJson>('keys', 'create', '--team', 'counted', '--expires', '1d'),
      await tool.json<NewKeyJson>('keys', 'create', '--team', 'counted', '--expires', '0s'),
      await tool.json<NewKeyJson>('keys', 'create', '--team', 'counted'),
    ];
    assert.ok(keys.every(({ team_id }) => team_id === team.team_id));
    for (let i = 0; i < 3; i++) {
      assert.equal((await postTrace(server.url, keys[0]?.key ?? '')).status, 201);
    }
    await tool.json('keys', 'revoke', keys[3]?.key_id ?? '');
    const listedTeam = (
      await tool.json<{ team: string; traces: number; live_keys: number }[]>('teams', 'list')
    ).find(({ team: name }) => name === 'counted');
    assert.deepEqual(
      { traces: listedTeam?.traces, live_keys: listedTeam?.live_keys },
      { traces: 3, live_keys: 2 },
    );
    const table = await tool.run('teams', 'list');
    assert.match(table.stdout, new RegExp(`^counted +${team.team_id} +UTC +3 +2 +\\d{4}-`, 'm'));
  });

  test('a team name is given only once', async () => {
    const first = await tool.json<{ team_id: string }>('teams', 'create', 'unique');
    const second = await tool.run('teams', 'create', 'unique');
    assertRefused(
      second,
      1,
      new RegExp(`team "unique" already exists\\. Its id is ${first.team_id}`),
    );
  });
});
