import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { recordOne } from './support/seed.ts';
import { openStage, signInLink } from './support/stage.ts';

const { inBrowser } = openStage();

function shownTeam(page: Page): Promise<string | null> {
  return page.getByRole('banner').locator('.team').textContent();
}

test(
  'the header shows the team, even if its name is long or hostile',
  inBrowser(async ({ page, service }) => {
    const name = `<b>"Ops" & ${'long '.repeat(15)}`;
    const { key, keyId } = await service.keyFor(name);
    await recordOne(service, key);
    await page.goto(await signInLink(service, keyId));
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    assert.equal(await shownTeam(page), `Team ${name}`);
    const { width, inner } = await page.evaluate(() => ({
      width: document.documentElement.scrollWidth,
      inner: innerWidth,
    }));
    assert.ok(width <= inner, `${width} px`);
  }),
);

test(
  'a link for another team asks first, shows both teams, and changes nothing before the answer',
  inBrowser(async ({ page, context, home, team, key, service, open }) => {
    await recordOne(service, key, { model: 'of-the-first-team' });
    const other = await service.keyFor();
    await recordOne(service, other.key, { model: 'of-the-second-team' });
    await open('#/traces');
    const [before] = await context.cookies();
    const link = await signInLink(service, other.keyId);

    for (const how of ['in a page already open', 'in a new tab'] as const) {
      const tab = how === 'in a new tab' ? await context.newPage() : page;
      if (how === 'in a new tab') await tab.goto(link);
      else await tab.evaluate((url) => (location.href = url), link);
      await tab.getByRole('heading', { name: 'Switch teams?' }).waitFor();
      assert.equal(tab.url(), `${home}#/`);
      const question = await tab.getByRole('main').innerText();
      assert.match(question, new RegExp(`This link signs you in to\\s+${other.team}`));
      assert.match(question, new RegExp(`You are signed in to\\s+${team}`));
      assert.deepEqual(await context.cookies(), [before]);
      await tab.getByRole('button', { name: 'Stay signed in' }).click();
      await tab.getByText('of-the-first-team').first().waitFor();
      assert.equal(await shownTeam(tab), `Team ${team}`);
      assert.deepEqual(await context.cookies(), [before]);
    }

    await page.evaluate((url) => (location.href = url), link);
    await page.getByRole('button', { name: 'Switch', exact: true }).click();
    await page.getByText('of-the-second-team').first().waitFor();
    assert.equal(await shownTeam(page), `Team ${other.team}`);
    assert.doesNotMatch(await page.content(), /of-the-first-team/);
  }),
);

test(
  'an expired link does not change the session',
  inBrowser(async ({ page, context, key, service, open, link }) => {
    await recordOne(service, key, { model: 'still-there' });
    await open();
    const [before] = await context.cookies();
    const used = (await link()).replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'));
    await page.evaluate((url) => (location.href = url), used);
    await page.getByRole('alert').getByText('no longer valid').waitFor();
    await page.getByRole('button', { name: 'Stay signed in' }).click();
    await page.getByText('still-there').first().waitFor();
    assert.deepEqual(await context.cookies(), [before]);
  }),
);

test(
  'other tabs follow a sign-in to another team and a sign-out, and never mix two teams',
  inBrowser(async ({ page, context, key, service, open }) => {
    await recordOne(service, key, { model: 'of-the-first-team' });
    const other = await service.keyFor();
    await recordOne(service, other.key, { model: 'of-the-second-team' });
    await open();
    await page.getByText('of-the-first-team').first().waitFor();
    const tab = await context.newPage();
    await tab.goto(await signInLink(service, other.keyId));
    await tab.getByRole('button', { name: 'Switch', exact: true }).click();
    await tab.getByText('of-the-second-team').first().waitFor();

    await page.bringToFront();
    await page.getByText('of-the-second-team').first().waitFor();
    assert.equal(await shownTeam(page), `Team ${other.team}`);
    assert.doesNotMatch(await page.content(), /of-the-first-team/);

    await tab.bringToFront();
    await tab.getByRole('button', { name: 'Sign out' }).click();
    await tab.getByLabel('API key').waitFor();
    await page.bringToFront();
    await page.getByRole('alert').getByText('You are signed out').waitFor();
    assert.doesNotMatch(await page.content(), /of-the-second-team/);
  }),
);

/** A page of another origin, on loopback. */
async function openStranger(t: TestContext, html: string): Promise<string> {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end(html);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => new Promise((resolve) => server.close(resolve)));
  t.after(() => server.closeAllConnections());
  return String((server.address() as AddressInfo).port);
}

/** What a hostile page can try, and what came of it. */
async function tryAll(page: Page, home: string, key: string): Promise<string[]> {
  return page.evaluate(
    async ([target, attackerKey]) => {
      const header = { 'x-tracetally-dashboard': 'any' };
      const body = JSON.stringify({ key: attackerKey });
      const json = { 'content-type': 'application/json' };
      const tries: Record<string, [string, RequestInit]> = {
        'read with the cookie': ['traces', {}],
        'read with the cookie and the header': ['traces', { headers: header }],
        'read the session': ['session', { headers: header }],
        'read without CORS': ['traces', { mode: 'no-cors' }],
        'sign in with JSON': ['session', { method: 'POST', headers: json, body }],
        'sign in with text': ['session', { method: 'POST', mode: 'no-cors', body }],
        'sign out': ['session', { method: 'DELETE' }],
      };
      const results: string[] = [];
      for (const [name, [path, init]] of Object.entries(tries)) {
        try {
          const response = await fetch(`${target}${path}`, { credentials: 'include', ...init });
          const seen = response.type === 'opaque' ? 'nothing' : await response.text();
          results.push(`${name}: saw ${seen}`);
        } catch {
          results.push(`${name}: refused`);
        }
      }
      return results;
    },
    [home, key] as const,
  );
}

for (const [what, host] of [
  ['another site', 'localhost'],
  ['another port of the same host', '127.0.0.1'],
] as const) {
  test(
    `a page of ${what} can neither read with the session nor change it`,
    inBrowser(async ({ t, context, page, home, key, service, open, origins, harmless }) => {
      await recordOne(service, key, { model: 'private-model' });
      const attacker = await service.keyFor();
      await open();
      const before = await context.cookies();
      assert.equal(before.length, 1);
      const form =
        `<form id="f" method="post" enctype="text/plain" action="${home}session">` +
        `<input name='{"key":"${attacker.key}","x":"' value='"}'></form>`;
      const port = await openStranger(t, form);
      origins.push(`http://${host}:${port}`);
      // The browser complains about what it blocked, in the page of the attacker.
      harmless.push(/blocked by CORS policy/);
      const evil = await context.newPage();
      await evil.goto(`http://${host}:${port}/`);
      assert.deepEqual(await tryAll(evil, home, attacker.key), [
        'read with the cookie: refused',
        'read with the cookie and the header: refused',
        'read the session: refused',
        'read without CORS: saw nothing',
        'sign in with JSON: refused',
        'sign in with text: saw nothing',
        'sign out: refused',
      ]);
      // The same as a form, which needs no permission and leads to the answer.
      await Promise.all([
        evil.waitForURL(`${home}session`),
        evil.locator('#f').evaluate((element) => (element as HTMLFormElement).submit()),
      ]);
      const answer = await evil.locator('body').innerText();
      assert.match(answer, /cross_site_request|unsupported_media_type/);
      assert.deepEqual(await context.cookies(), before, 'the session is as it was');
      await page.bringToFront();
      await page.reload();
      await page.getByText('private-model').first().waitFor();
    }),
  );
}
