import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { needProgram } from '../../server/test/support/debian.ts';
import { skipUnlessCi } from '../../server/test/support/skip.ts';
import { recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import { eventually } from './support/wait.ts';

const { inBrowser } = openStage();
const run = promisify(execFile);

const aFewSecondsMs = 6_000;

for (const fragment of ['#/', '#/traces'] as const) {
  test(
    `at ${fragment} a new team is shown a curl command that works as it stands once the key is in the environment, and the page turns by itself`,
    inBrowser(async ({ t, page, service, key, open }) => {
      const missing = needProgram('curl');
      if (missing !== null) return skipUnlessCi(t, missing);
      await open(fragment);
      await page.getByRole('heading', { name: 'Record your first call' }).waitFor();
      const command = await page.getByLabel('curl command', { exact: true }).innerText();
      assert.ok(command.includes(service.url), command);
      const env = { ...process.env, TRACETALLY_API_KEY: key };
      const { stdout } = await run('sh', ['-c', command], { env });
      const trace = JSON.parse(stdout) as { id: string; model: string };
      assert.ok(trace.id, stdout);
      const title = fragment === '#/' ? 'Overview' : 'Traces';
      const heading = page.getByRole('heading', { name: title, level: 1 });
      await heading.waitFor({ timeout: aFewSecondsMs });
      await page.getByRole('main').getByText(trace.model).first().waitFor();
      assert.equal(await page.getByText('Record your first call').count(), 0);
    }),
  );
}

test(
  'the snippets can be copied as they are shown, and take the key from the environment',
  inBrowser(
    async ({ page, key, open }) => {
      await open();
      for (const name of ['curl command', 'TypeScript code']) {
        await page.getByRole('button', { name: `Copy the ${name}` }).click();
        const shown = await page.getByLabel(name, { exact: true }).innerText();
        assert.match(shown, /\bTRACETALLY_API_KEY\b/);
        await eventually(async () =>
          assert.equal(await page.evaluate(() => navigator.clipboard.readText()), shown),
        );
      }
      assert.ok(!(await page.content()).includes(key));
    },
    { permissions: ['clipboard-read', 'clipboard-write'] },
  ),
);

test(
  'nothing of another team counts as the first trace',
  inBrowser(async ({ page, home, service, open, watch }) => {
    await page.clock.install();
    await open();
    const stranger = await service.keyFor();
    await recordOne(service, stranger.key, { model: 'not-yours' });
    const since = watch.requests.length;
    await eventually(async () => {
      await page.clock.runFor(1_000);
      assert.ok(watch.apiCalls(home, since).length >= 2);
    });
    await page.getByRole('heading', { name: 'Record your first call' }).waitFor();
    assert.doesNotMatch(await page.content(), /not-yours/);
  }),
);
