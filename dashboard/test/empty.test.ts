import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { needProgram } from '../../server/test/support/debian.ts';
import { skipUnlessCi } from '../../server/test/support/skip.ts';
import type { TestService } from '../../server/test/support/service.ts';
import { recordOne } from './support/seed.ts';
import { openStage, signInLink } from './support/stage.ts';
import { eventually } from './support/wait.ts';

const { inBrowser } = openStage();
const run = promisify(execFile);

const root = fileURLToPath(new URL('../../', import.meta.url));
/** The page asks every two seconds. The rest is for a busy machine. */
const aFewSecondsMs = 20_000;
const pasteMsMax = 120_000;

/** Runs the commands one after the other in one shell, as if they were pasted into a terminal in the TraceTally folder. */
async function paste(service: TestService, commands: readonly string[]): Promise<string> {
  const env = { ...process.env, TRACETALLY_DATABASE: `sqlite:${service.databasePath}` };
  const shell = run('sh', ['-s'], { env, cwd: root, timeout: pasteMsMax });
  shell.child.stdin?.end(`${commands.join('\n')}\n`);
  return (await shell).stdout;
}

for (const fragment of ['#/', '#/traces'] as const) {
  test(
    `at ${fragment} a new team that signed in with a read key records its first trace by pasting the commands in order`,
    inBrowser(async ({ t, page, service, team, home }) => {
      const missing = needProgram('curl');
      if (missing !== null) return skipUnlessCi(t, missing);
      const reader = await service.keyFor(team, { scope: 'read' });
      await page.goto(await signInLink(service, reader.keyId));
      await page.goto(`${home}${fragment}`);
      await page.getByRole('heading', { name: 'Record your first call' }).waitFor();
      await page.getByText('needs an API key with the scope ingest or full').waitFor();
      const commands: string[] = [];
      for (const name of ['key command', 'curl command'])
        commands.push(await page.getByLabel(name, { exact: true }).innerText());
      const stdout = await paste(service, commands);
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
  'the key command quotes any team name for the shell',
  inBrowser(async ({ page, service }) => {
    const name = `-o'Neill "$(touch x)" \`ls\``;
    const { keyId } = await service.keyFor(name);
    await page.goto(await signInLink(service, keyId));
    const command = await page.getByLabel('key command', { exact: true }).innerText();
    const stdout = await paste(service, [command, 'printf %s "$TRACETALLY_API_KEY"']);
    assert.match(stdout, /^tt_/);
    const { status } = await service.call(stdout, 'POST', '/traces', { model: 'm' });
    assert.equal(status, 201);
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  }),
);

test(
  'the snippets are copied as shown, and contain no key',
  inBrowser(
    async ({ page, key, open }) => {
      await open();
      for (const name of ['key command', 'curl command', 'TypeScript code']) {
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
  'a trace of another team does not end the empty state',
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
