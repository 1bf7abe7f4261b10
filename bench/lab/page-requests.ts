import type { Page, Request } from 'playwright-core';
import { findBrowser } from '../../dashboard/test/support/browser.ts';

export interface AskedRequest {
  /** Path and query. */
  request: string;
  /** From the first byte sent to the last byte received, as the browser measured it. */
  ms: number;
}

/** The dashboard in a real browser. */
export interface DashboardPage {
  /** Opens an address as a copied link would, and returns what the page requested from the API until nothing was left to request. */
  visit(fragment: string): Promise<AskedRequest[]>;
  close(): Promise<void>;
}

/** A request that follows from an answer is sent within this time. */
const quietMs = 200;
const pollMs = 20;
const deadlineMs = 60_000;

export async function openDashboard(url: string, key: string): Promise<DashboardPage> {
  const found = await findBrowser();
  if ('missing' in found) throw new Error(found.missing);
  const context = await found.browser.newContext({ viewport: { width: 1280, height: 800 } });
  const reply = await context.request.post(`${url}/session`, { data: { key } });
  if (reply.status() !== 201) throw new Error(await reply.text());
  const page = await context.newPage();
  const watched = watch(page, url);
  return {
    async visit(fragment) {
      await page.goto('about:blank');
      watched.begin();
      await page.goto(`${url}/${fragment}`);
      return watched.end();
    },
    close: () => found.browser.close(),
  };
}

function watch(page: Page, url: string) {
  let lastMs = 0;
  const pending = new Set<Request>();
  /** A page that shows an error is loaded quickly, which must not count. */
  let failed: string[] = [];
  const pathOf = (address: string): string => address.slice(url.length);
  const isOfApi = (path: string): boolean => /^\/(analytics|traces)\b/.test(path);
  page.on('request', (request) => {
    if (isOfApi(pathOf(request.url()))) pending.add(request);
    lastMs = performance.now();
  });
  page.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText;
    // The page cancels what it no longer needs. Chromium also says this of some replies that were read to their end.
    if (pending.delete(request) && reason !== 'net::ERR_ABORTED')
      failed.push(`${request.url()}: ${reason}`);
  });
  page.on('response', (response) => {
    if (isOfApi(pathOf(response.url())) && !response.ok())
      failed.push(`${response.url()}: ${response.status()}`);
  });
  page.on('requestfinished', (request) => {
    lastMs = performance.now();
    pending.delete(request);
  });

  /** As the page itself measured them. A request that was cancelled has no status. */
  async function answered(): Promise<AskedRequest[]> {
    const entries = await page.evaluate(() =>
      (performance.getEntriesByType('resource') as PerformanceResourceTiming[])
        .filter(({ responseStatus }) => responseStatus === 200)
        .map(({ name, requestStart, responseEnd }) => ({ name, ms: responseEnd - requestStart })),
    );
    const asked = entries.map(({ name, ms }) => ({ request: pathOf(name), ms }));
    return asked.filter(({ request }) => isOfApi(request));
  }

  return {
    begin(): void {
      failed = [];
      pending.clear();
    },
    async end(): Promise<AskedRequest[]> {
      const startMs = performance.now();
      // While anything is loading, the page shows a placeholder for it.
      await page.getByRole('navigation', { name: 'Main' }).waitFor();
      const loading = page.locator('main .bone, main .skeleton');
      const isBusy = async (): Promise<boolean> =>
        pending.size > 0 ||
        performance.now() - lastMs < quietMs ||
        (await loading.count()) > 0 ||
        (await answered()).length === 0;
      while (await isBusy()) {
        if (performance.now() - startMs > deadlineMs) throw new Error('the page is never quiet');
        await new Promise((resolve) => setTimeout(resolve, pollMs));
      }
      if (failed.length > 0) throw new Error(failed.join('; '));
      return answered();
    },
  };
}
