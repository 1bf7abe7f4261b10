import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { dataUrlFile, fileIn, withoutFiles } from '../src/trace/embedded-file.ts';
import { indentJson, indentValue } from '../src/trace/indent-json.ts';
import { recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import { eventually } from './support/wait.ts';

const { inBrowser } = openStage();

/** 34,000 bytes that start like a PNG. */
const png = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(33_992, 7)]);
const data = png.toString('base64');
const url = `data:image/png;base64,${data}`;

test('a file is described by its type and size, and text that is no file is not', () => {
  assert.equal(dataUrlFile(url), 'image/png, 34 KB');
  assert.equal(dataUrlFile('data:image/svg+xml;charset=utf-8;base64,AAAA'), 'image/svg+xml, 3 B');
  assert.equal(fileIn({ media_type: 'image/webp', data: 'AAA=' }), 'image/webp, 2 B');
  assert.equal(fileIn({ mimeType: 'audio/wav', data: 'AA==' }), 'audio/wav, 1 B');
  for (const text of ['https://example.test/x.png', 'data:text/html,<b>', `${url} and`, 1, null])
    assert.equal(dataUrlFile(text), null, String(text));
  for (const holder of [
    { media_type: 'image/png', data: 'not base64!' },
    { media_type: '<b>', data },
    { media_type: `${'x'.repeat(1_000)}/png`, data },
    { data },
    { media_type: 1, data: 2 },
  ])
    assert.equal(fileIn(holder), null);
});

test('files inside a text are replaced, and the rest of the text stays', () => {
  const text = `before ![a](${url}) between <img src="data:image/gif;base64,R0lGOD=="> after`;
  assert.equal(
    withoutFiles(text),
    'before ![a]([image/png, 34 KB]) between <img src="[image/gif, 4 B]"> after',
  );
  assert.equal(withoutFiles(data), '[image/png, 34 KB]', 'base64 of a known type without a prefix');
  for (const plain of ['', 'x'.repeat(5_000), '/9j/', 'data:;base64,', 'data:image/png;base64,'])
    assert.equal(withoutFiles(plain), plain);
});

test('JSON shows files as placeholders, whichever fields hold them', () => {
  const value = {
    openai: { url },
    anthropic: { type: 'base64', media_type: 'image/webp', data: 'A'.repeat(400) },
    gemini: { mime_type: 'image/webp', data: 'A'.repeat(400) },
    output: [{ b64_json: data }],
    unrelated: { data: 'A'.repeat(400) },
  };
  const shown = {
    openai: { url: '[image/png, 34 KB]' },
    anthropic: { type: 'base64', media_type: 'image/webp', data: '[image/webp, 300 B]' },
    gemini: { mime_type: 'image/webp', data: '[image/webp, 300 B]' },
    output: [{ b64_json: '[image/png, 34 KB]' }],
    unrelated: { data: 'A'.repeat(400) },
  };
  const wanted = JSON.stringify(shown, null, 2);
  assert.equal([...indentValue(value)].join(''), wanted);
  assert.equal([...indentJson(JSON.stringify(value))].join(''), wanted);
  // Some languages escape slashes.
  const escaped = JSON.stringify(value).replaceAll('/', '\\/');
  assert.equal([...indentJson(escaped)].join('').replaceAll('\\/', '/'), wanted);
});

/** Processor time of this thread, which does not depend on how busy the machine is. */
function cpuMsOf(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

test('looking for files in hostile text takes linear time', () => {
  const megabytes = 4_000_000;
  for (const piece of ['data:', 'data:a/', 'data:a/b;', 'data:a/b;c=d;', ';base64,', 'A'])
    for (const end of ['', '!']) {
      const text = piece.repeat(megabytes / piece.length) + end;
      const tookMs = cpuMsOf(() => {
        withoutFiles(text);
        withoutFiles(`/9j/${text}`);
        fileIn({ media_type: text, data: text });
      });
      const passMs = cpuMsOf(() => {
        let sum = 0;
        for (let i = 0; i < text.length; i++) sum += text.charCodeAt(i);
        assert.ok(sum > 0);
      });
      // Quadratic time would be as many passes as there are characters.
      assert.ok(tookMs < 2_000 * passMs, `${tookMs} ms for ${piece}, one pass takes ${passMs} ms`);
    }
});

function input(page: Page): Locator {
  return page.getByRole('region', { name: 'Input' });
}

const images: [provider: string, part: object][] = [
  ['OpenAI', { type: 'image_url', image_url: { url, detail: 'high' } }],
  ['OpenAI (Responses)', { type: 'input_image', image_url: url }],
  ['Anthropic', { type: 'image', source: { type: 'base64', media_type: 'image/png', data } }],
  ['Gemini', { inlineData: { mimeType: 'image/png', data } }],
];

test(
  'an image in a conversation shows as its type and size, in messages and JSON, and Raw shows it as recorded',
  inBrowser(async ({ page, service, key, open, go }) => {
    await open();
    for (const [provider, part] of images) {
      const recorded = JSON.stringify([
        { role: 'user', content: [{ type: 'text', text: 'What is this?' }, part] },
      ]);
      const trace = await recordOne(service, key, { input: recorded, output: provider });
      await go(`#/traces/${trace.id}`);
      await page.getByText(trace.id).waitFor();
      const place = input(page);
      await place.getByText('image/png, 34 KB', { exact: true }).waitFor();
      const messages = (await place.getByRole('listitem').innerText()).replaceAll(/\s+/g, ' ');
      assert.match(messages, /^user What is this\? image\/png, 34 KB$/i, provider);
      const show = (view: string): Promise<void> =>
        place.getByRole('group').getByText(view, { exact: true }).click();
      await show('JSON');
      await place.getByText('[image/png, 34 KB]').waitFor();
      assert.ok((await place.innerText()).length < 1_000, provider);
      await show('Raw');
      await place.getByRole('button', { name: 'Show all' }).click();
      await eventually(async () =>
        assert.equal(await place.locator('[dir=auto]').textContent(), recorded),
      );
    }
    assert.equal(await page.locator('main img').count(), 0, 'no image is ever rendered');
  }),
);

test(
  'a data URL in plain text shows as its type and size, and Raw shows it as recorded',
  inBrowser(async ({ page, service, key, open }) => {
    const trace = await recordOne(service, key, { input: `Look: ${url}` });
    await open(`#/traces/${trace.id}`);
    await input(page).getByText('Look: [image/png, 34 KB]', { exact: true }).waitFor();
    await input(page).getByRole('group').getByText('Raw', { exact: true }).click();
    await input(page).getByText('Look: data:image/png;base64,').waitFor();
  }),
);
