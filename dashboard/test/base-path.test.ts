import assert from 'node:assert/strict';
import { test } from 'node:test';
import { recordOne } from './support/seed.ts';
import { openStage, signInLink } from './support/stage.ts';

const { inBrowser } = openStage({ flags: { 'base-path': '/v1' } });

test(
  'under a base path everything works, and no request leaves it',
  inBrowser(async ({ page, home, service, key, keyId, watch }) => {
    assert.ok(home.endsWith('/v1/'));
    // Without the slash, and with the code in the fragment, which a redirect keeps.
    await page.goto((await signInLink(service, keyId)).replace('/#', '#'));
    await page.getByText('Waiting for the first trace').waitFor();
    assert.equal(page.url(), `${home}#/`);
    const command = await page.getByLabel('curl command', { exact: true }).innerText();
    assert.ok(command.includes(`'${service.url}/traces'`), command);
    const trace = await recordOne(service, key, { input: 'under a path', model: 'mounted' });
    await page
      .getByRole('slider', { name: /^Calls/ })
      .locator('canvas')
      .waitFor();
    await page.getByRole('link', { name: 'Traces', exact: true }).click();
    await page.getByRole('link', { name: /, mounted$/ }).click();
    await page.getByText('under a path').waitFor();
    assert.equal(page.url(), `${home}#/traces/${trace.id}`);
    await page.reload();
    await page.getByText('under a path').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API key').waitFor();
    const outside = watch.requests
      .map((request) => request.url())
      .filter((url) => !url.startsWith(home) && url !== service.url);
    assert.deepEqual(outside, []);
  }),
);
