import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';

const { inBrowser } = openStage();

const firstLoadBytesMax = 100_000;

test(
  'the first load is below 100 kB with gzip, including the charts',
  inBrowser(async ({ t, page, home, service, key, open, watch }) => {
    await recordOne(service, key);
    const session = await page.context().newCDPSession(page);
    let transferred = 0;
    session.on('Network.loadingFinished', ({ encodedDataLength }) => {
      transferred += encodedDataLength;
    });
    await session.send('Network.enable');
    await open();
    await page
      .getByRole('slider', { name: /^Calls/ })
      .locator('canvas')
      .waitFor();
    await page.waitForLoadState('networkidle');

    const urls = new Set(watch.requests.map((request) => request.url()));
    const files = [...urls].filter((url) => url === home || url.startsWith(`${home}assets/`));
    assert.ok(files.length >= 4, files.join());
    let gzip = 0;
    for (const url of files) {
      const response = await fetch(url, { headers: { 'accept-encoding': 'gzip' } });
      assert.equal(response.headers.get('content-encoding'), 'gzip', url);
      gzip += Number(response.headers.get('content-length'));
      const plain = Buffer.from(await response.arrayBuffer());
      const least = gzipSync(plain, { level: 9 }).length;
      assert.ok(Number(response.headers.get('content-length')) <= least * 1.02, url);
    }
    const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(1)} kB`;
    t.diagnostic(
      `first load: ${kilobytes(gzip)} of files as gzip; ${kilobytes(transferred)} on the line, with headers and answers`,
    );
    assert.ok(gzip < firstLoadBytesMax, kilobytes(gzip));
    assert.ok(transferred > 0 && transferred < firstLoadBytesMax, kilobytes(transferred));
  }),
);

test(
  'a second visit downloads no file again',
  inBrowser(async ({ page, home, service, key, open }) => {
    await recordOne(service, key);
    await open();
    await page
      .getByRole('slider', { name: /^Calls/ })
      .locator('canvas')
      .waitFor();
    const tab = await page.context().newPage();
    const sent: string[] = [];
    tab.on('response', (response) => {
      void response
        .request()
        .sizes()
        .then(({ responseBodySize }) => {
          const isFile = response.url() === home || response.url().startsWith(`${home}assets/`);
          if (isFile && responseBodySize > 0) sent.push(response.url());
        });
    });
    await open('#/', tab);
    await tab
      .getByRole('slider', { name: /^Calls/ })
      .locator('canvas')
      .waitFor();
    assert.deepEqual(sent, []);
  }),
);
