import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before } from 'node:test';
import type { TestContext } from 'node:test';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { startTestService } from '../../../server/test/support/service.ts';
import type {
  KeyHolder,
  TestService,
  TestServiceOptions,
} from '../../../server/test/support/service.ts';
import { newCode } from '../../../server/test/http/session-helpers.ts';
import { skipUnlessCi } from '../../../server/test/support/skip.ts';
import { useBrowser } from './browser.ts';
import { watchContext } from './watch.ts';
import type { Watch } from './watch.ts';

/** An empty browser context, and a new team on a real server. */
export interface Visit extends KeyHolder {
  t: TestContext;
  service: TestService;
  /** Where the page is; ends with a slash. */
  home: string;
  context: BrowserContext;
  page: Page;
  watch: Watch;
  /** Whom the page may talk to: its own server, and what a test puts in front of it. */
  origins: string[];
  /** What the browser may complain about. */
  harmless: RegExp[];
  /** A fresh sign-in link for the visitor's key. It works once. */
  link(): Promise<string>;
  /** Signs in without the sign-in page, which has tests of its own, then opens this address and waits for its heading. */
  open(fragment?: string, page?: Page): Promise<void>;
  /** Within the page, as a link would. */
  go(fragment: string): Promise<void>;
}

export interface Stage {
  readonly service: TestService;
  /** The body of a test; skipped, with the reason, if there is no browser. */
  inBrowser(
    act: (visit: Visit) => Promise<void>,
    wishes?: BrowserContextOptions,
  ): (t: TestContext) => Promise<void>;
}

const page = new URL('../../dist/index.html', import.meta.url);

/** One server for the tests of a file. Each test gets a new browser context and a new team. */
export function openStage(options: TestServiceOptions = {}): Stage {
  const browserOf = useBrowser();
  let service: TestService | undefined;
  let browser: Browser | undefined;
  let missing: string | null = null;
  before(async () => {
    assert.ok(existsSync(page), 'the page is not built: run "npm run build" in dashboard/');
    const found = await browserOf();
    if ('missing' in found) missing = found.missing;
    else browser = found.browser;
    service = await startTestService(options);
  });
  after(async () => {
    await service?.stop();
  });
  return {
    get service() {
      assert.ok(service !== undefined);
      return service;
    },
    inBrowser: (act, wishes) => async (t) => {
      if (missing !== null) return skipUnlessCi(t, missing);
      assert.ok(service !== undefined && browser !== undefined);
      return perform({ t, service, browser, act, wishes: wishes ?? {} });
    },
  };
}

interface Performance {
  t: TestContext;
  service: TestService;
  browser: Browser;
  act: (visit: Visit) => Promise<void>;
  wishes: BrowserContextOptions;
}

async function perform({ t, service, browser, act, wishes }: Performance): Promise<void> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...wishes });
  // A deadline for what never happens, so it may be long; a busy machine needs several seconds for a page.
  context.setDefaultTimeout(120_000);
  const watch = await watchContext(context);
  const visit = await newVisit(t, service, context, watch);
  try {
    await act(visit);
    // In every test: the page reports no error and sends no request to another host.
    const trouble = watch.trouble.filter(
      (words) => !visit.harmless.some((pattern) => pattern.test(words)),
    );
    assert.deepEqual(trouble, []);
    assert.deepEqual(watch.strangers(visit.origins), []);
  } catch (error) {
    await describePage(visit);
    throw error;
  } finally {
    await context.close();
  }
}

async function newVisit(
  t: TestContext,
  service: TestService,
  context: BrowserContext,
  watch: Watch,
): Promise<Visit> {
  const holder = await service.keyFor();
  const home = `${service.url}/`;
  const first = await context.newPage();
  const link = () => signInLink(service, holder.keyId);
  return {
    ...holder,
    t,
    service,
    home,
    context,
    page: first,
    watch,
    origins: [new URL(home).origin],
    harmless: [],
    link,
    async open(fragment = '#/', other = first) {
      if ((await context.cookies()).length === 0) {
        const reply = await context.request.post(`${home}session`, {
          data: { code: await newCode(service, holder.keyId) },
        });
        assert.equal(reply.status(), 201, await reply.text());
        // Only a new document notices the cookie.
        if (other.url().startsWith(home)) await other.goto('about:blank');
      }
      await other.goto(`${home}${fragment}`);
      await other.getByRole('navigation', { name: 'Main' }).waitFor();
      await other.getByRole('main').getByRole('heading', { level: 1 }).waitFor();
    },
    async go(fragment) {
      await first.goto(`${home}${fragment}`);
    },
  };
}

/** What `tracetally sign-in` prints. */
export async function signInLink(service: TestService, keyId: string): Promise<string> {
  return `${service.url}/#code=${await newCode(service, keyId)}`;
}

/** For a failed test: what the page shows, and which errors the server logged. */
async function describePage({ t, service, page: shown, watch }: Visit): Promise<void> {
  for (const line of service.log().split('\n')) {
    if (line.includes('"level":"error"')) t.diagnostic(`server log: ${line.slice(0, 2_000)}`);
  }
  try {
    const text = (await shown.locator('body').innerText({ timeout: 1_000 })).replaceAll(
      /\s+/g,
      ' ',
    );
    t.diagnostic(`at ${shown.url().replace(/#(key|code)=.*/, '#$1=…')}: ${text.slice(0, 800)}`);
    const last = watch.requests.slice(-5).map((request) => request.url());
    t.diagnostic(`last requests: ${last.join(' ')}`);
    if (watch.trouble.length > 0) t.diagnostic(watch.trouble.join('\n'));
  } catch {
    t.diagnostic('the page could not be read');
  }
}
