import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { assertRefused, startServer, toolInFolder } from './helpers.ts';
import type { NewKeyJson } from './helpers.ts';

const tool = toolInFolder({ after });
const server = await startServer({ after }, tool);

interface SignInJson {
  link: string;
  code: string;
  expires: string;
  team_id: string;
  team: string;
  key_id: string;
}

async function newKey(team: string, ...flags: string[]): Promise<NewKeyJson> {
  return tool.json<NewKeyJson>('keys', 'create', '--team', team, ...flags);
}

async function enter(code: string): Promise<{ status: number; team: string | undefined }> {
  const response = await fetch(`${server.url}/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  });
  const body = (await response.json()) as { team?: { name: string } };
  return { status: response.status, team: body.team?.name };
}

describe('tracetally sign-in', { concurrency: 2 }, () => {
  test('prints a link with a code that signs in to the team once, and no key', async () => {
    const { key } = await newKey('search');
    const { code: exit, stdout, stderr } = await tool.run('sign-in', '--team', 'search');
    assert.equal(exit, 0, stderr);
    const code = /^http:\/\/127\.0\.0\.1:4000\/#code=(ttc_[\w-]{22})\n$/.exec(stdout)?.[1];
    assert.ok(code, stdout);
    assert.match(stderr, /"search".*once.*10 minutes.*key_\w+/s);
    assert.ok(!`${stdout}${stderr}`.includes(key));
    assert.deepEqual(await enter(code), { status: 201, team: 'search' });
    assert.equal((await enter(code)).status, 401);
  });

  test('--json prints the link, the code and what they are for', async () => {
    const { key_id: keyId, team_id: teamId } = await newKey('json');
    const beforeMs = Date.now();
    const made = await tool.json<SignInJson>('sign-in', '--team', 'json', '--url', server.url);
    const { code, expires, ...rest } = made;
    const link = `${server.url}/#code=${code}`;
    assert.deepEqual(rest, { link, team_id: teamId, team: 'json', key_id: keyId });
    const madeMs = Date.parse(expires) - 600_000;
    assert.ok(madeMs >= beforeMs - 1 && madeMs <= Date.now() + 1, expires);
    assert.deepEqual(await enter(code), { status: 201, team: 'json' });
  });

  test('the link leads to the server of these settings, or to --url', async () => {
    await newKey('places');
    const args = ['sign-in', '--team', 'places'];
    for (const [flags, start] of [
      [['--port', '8080', '--base-path', '/v1'], 'http://127.0.0.1:8080/v1/#code='],
      [['--host', '0.0.0.0'], 'http://127.0.0.1:4000/#code='],
      [['--url', 'https://tally.example/v1/'], 'https://tally.example/v1/#code='],
    ] as const) {
      const { stdout } = await tool.run(...args, ...flags);
      assert.ok(stdout.startsWith(start), stdout);
    }
    for (const url of ['tally.example', 'ftp://x', 'http://x/#y', 'http://x/?y', '']) {
      assertRefused(await tool.run(...args, '--url', url), 1, /--url/);
    }
    assertRefused(await tool.run(...args, '--port', '0'), 1, /--url/);
  });

  test('prefers the newest valid key that may only read, and takes the one of --key-id', async () => {
    const full = await newKey('several', '--scope', 'full');
    const older = await newKey('several', '--scope', 'read');
    const newer = await newKey('several', '--scope', 'read');
    const keyOf = async (...flags: string[]) =>
      (await tool.json<SignInJson>('sign-in', ...flags)).key_id;
    assert.equal(await keyOf('--team', 'several'), newer.key_id);
    assert.equal(await keyOf('--key-id', older.key_id), older.key_id);
    for (const { key_id: id } of [newer, older]) await tool.run('keys', 'revoke', id);
    assert.equal(await keyOf('--team', 'several'), full.key_id);
    await tool.run('keys', 'revoke', full.key_id);
    await newKey('several', '--scope', 'ingest');
    assertRefused(
      await tool.run('sign-in', '--team', 'several'),
      1,
      /team "several" has no valid key with the scope "read" or "full".*keys create --team several --scope read/s,
    );
    assertRefused(await tool.run('sign-in', '--key-id', full.key_id), 1, /was revoked\.$/m);
  });

  test('is refused without a team or a key, with both, or with one that is not there', async () => {
    assertRefused(await tool.run('sign-in'), 1, /--team or --key-id/);
    const both = await tool.run('sign-in', '--team', 'x', '--key-id', 'y');
    assertRefused(both, 1, /--team or --key-id/);
    assertRefused(await tool.run('sign-in', '--team', 'nobody'), 1, /no team "nobody"/);
    assertRefused(await tool.run('sign-in', '--key-id', 'key_none'), 1, /no key "key_none"/);
    const { key_id: id } = await newKey('recorder', '--scope', 'ingest');
    assertRefused(await tool.run('sign-in', '--key-id', id), 1, /scope "ingest"/);
  });
});
