import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { runCli, spawnServer } from '../../server/test/support/cli.ts';
import { findBrowser } from '../test/support/browser.ts';

/** Takes the pictures of the page that the documentation shows: a real server, made-up calls, a real browser. */

const folder = join(import.meta.dirname, '..', '..', 'docs', 'images');
const wide = { width: 1280, height: 800 };
const narrow = { width: 390, height: 844 };

interface Scene {
  name: string;
  team: 'demo' | 'empty';
  viewport: typeof wide;
  /** From the overview to what is shown. */
  act: (page: Page) => Promise<void>;
}

const scenes: readonly Scene[] = [
  { name: 'overview', team: 'demo', viewport: { width: 1280, height: 1000 }, act: charts },
  {
    name: 'filtered',
    team: 'demo',
    viewport: { width: 1280, height: 1000 },
    act: async (page) => {
      await go(page, '#/?last=30d&environment=production&feature_name=chat&split=provider');
      await page.getByRole('table', { name: /^Providers/ }).waitFor();
      await charts(page);
      const area = page.locator('.chart .u-over').first();
      const box = await area.boundingBox();
      if (box !== null) await page.mouse.move(box.x + box.width * 0.6, box.y + box.height * 0.8);
      await page.locator('.legend-line.looked-at').waitFor();
    },
  },
  {
    name: 'table',
    team: 'demo',
    viewport: wide,
    act: async (page) => {
      await go(page, '#/?last=24h&show=table');
      await page
        .getByRole('table', { name: /over time$/ })
        .first()
        .waitFor();
    },
  },
  {
    name: 'users',
    team: 'demo',
    viewport: wide,
    act: async (page) => {
      await go(page, '#/users?last=30d&order=errors');
      await page.getByRole('table', { name: /^Users/ }).waitFor();
    },
  },
  {
    name: 'search',
    team: 'demo',
    viewport: wide,
    act: async (page) => {
      await go(page, '#/traces?last=7d&status=error&error_type=rate_limit');
      await page.getByRole('table', { name: /^Traces/ }).waitFor();
      await page.getByText(/traces, newest first/).waitFor();
    },
  },
  {
    name: 'traces',
    team: 'demo',
    viewport: wide,
    act: async (page) => {
      await page.getByRole('link', { name: 'Traces' }).click();
      await page.getByRole('table').waitFor();
    },
  },
  {
    name: 'detail',
    team: 'demo',
    viewport: { width: 1280, height: 1000 },
    act: async (page) => {
      await page.getByRole('link', { name: 'Traces' }).click();
      await page
        .getByRole('row', { name: /support/ })
        .getByRole('link')
        .first()
        .click();
      await page.getByRole('heading', { name: 'Input' }).waitFor();
      await page.getByRole('table', { name: /^Calls of this run/ }).waitFor();
    },
  },
  {
    name: 'cost',
    team: 'demo',
    viewport: { width: 1280, height: 840 },
    act: async (page) => {
      await go(page, '#/traces?feature_name=reports&model=gemini-2.5-pro');
      await page
        .getByRole('row', { name: /reports/ })
        .getByRole('link')
        .first()
        .click();
      await page.getByRole('heading', { name: 'Computed cost' }).click();
      await page.getByRole('table', { name: 'How the cost was computed' }).waitFor();
      await page.mouse.move(0, 0);
    },
  },
  {
    name: 'empty',
    team: 'empty',
    viewport: wide,
    act: async (page) => {
      await page.getByText('Waiting for the first trace').waitFor();
    },
  },
  { name: 'mobile', team: 'demo', viewport: narrow, act: charts },
  {
    name: 'mobile-users',
    team: 'demo',
    viewport: narrow,
    act: async (page) => {
      await go(page, '#/users?last=30d&environment=production');
      await page.getByRole('table', { name: /^Users/ }).waitFor();
    },
  },
  {
    name: 'mobile-traces',
    team: 'demo',
    viewport: narrow,
    act: async (page) => {
      await go(page, '#/traces?last=7d&status=error');
      await page.getByText(/traces, newest first/).waitFor();
      await page.getByRole('table', { name: /^Traces/ }).waitFor();
    },
  },
];

/** A sign-in link leads to the overview; from there as a link in the page would. */
async function go(page: Page, fragment: string): Promise<void> {
  await page.evaluate((target) => {
    location.hash = target;
  }, fragment);
}

const conversation = {
  model: 'claude-sonnet-4',
  input: JSON.stringify({
    model: 'claude-sonnet-4',
    system: 'You answer questions about orders of the shop. Be brief, and say what happens next.',
    messages: [
      { role: 'user', content: 'Where is my order 4411? It should have been here on Friday.' },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Let me look that up.' },
          { type: 'tool_use', id: 'call_1', name: 'find_order', input: { order: 4411 } },
        ],
      },
    ],
  }),
  output:
    'Your order 4411 left our warehouse yesterday evening and is on its way.\n\n' +
    'It should reach you on Tuesday. If it does not, write to us again, and we send another one.',
  response_model: 'claude-sonnet-4-20250514',
  provider: 'anthropic',
  prompt_tokens: 812,
  cache_read_tokens: 512,
  completion_tokens: 64,
  ttft_ms: 420,
  latency_ms: 2_140,
  cost_usd: 0.003396,
  feature_name: 'support',
  user_identifier: 'user-17',
};

/** Recorded without a cost, so the server computes it. */
const report = {
  model: 'gemini-2.5-pro',
  provider: 'google',
  input: 'Summarize the attached reports of the last quarter in one sentence.',
  output: 'Revenue grew in every region, and support costs per order fell for the third time.',
  prompt_tokens: 214_560,
  cache_read_tokens: 180_224,
  completion_tokens: 912,
  reasoning_tokens: 768,
  latency_ms: 9_320,
  feature_name: 'reports',
  user_identifier: 'user-4',
  environment: 'production',
};

async function charts(page: Page): Promise<void> {
  await page.locator('.chart canvas').nth(4).waitFor();
  await page.locator('.change').first().waitFor();
}

const store = mkdtempSync(join(tmpdir(), 'tracetally-screenshots-'));
const database = ['--database', `sqlite:${join(store, 'demo.db')}`];
try {
  execFileSync(process.execPath, [join(import.meta.dirname, '..', 'build.ts'), '--if-stale']);
  mkdirSync(folder, { recursive: true });
  await runCli(['demo', '--count', '48000', '--team', 'demo', '--days', '60', ...database]);
  const demoKey = await newKey('demo');
  await newKey('empty');
  const server = await spawnServer([...database, '--price-missing-costs']);
  try {
    await record(server.url, demoKey);
    const found = await findBrowser();
    if ('missing' in found) throw new Error(found.missing);
    try {
      await takeAll(found.browser, server.url);
    } finally {
      await found.browser.close();
    }
  } finally {
    await server.end('SIGTERM');
  }
} finally {
  rmSync(store, { recursive: true, force: true });
}

async function takeAll(browser: Browser, url: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const { name, team, viewport, act } of scenes) {
      const context = await browser.newContext({ viewport, colorScheme, reducedMotion: 'reduce' });
      const page = await context.newPage();
      await page.goto(await newLink(team, url));
      await page.getByRole('main').getByRole('heading', { level: 1 }).waitFor();
      await act(page);
      const path = join(folder, `dashboard-${name}-${colorScheme}.png`);
      await page.screenshot({ path });
      process.stdout.write(`${path} ${Math.round(statSync(path).size / 1000)} kB\n`);
      await context.close();
    }
  }
}

async function newKey(team: string): Promise<string> {
  return (await runJson<{ key: string }>('keys', 'create', '--team', team)).key;
}

/** Each link works once. */
async function newLink(team: string, url: string): Promise<string> {
  return (await runJson<{ link: string }>('sign-in', '--team', team, '--url', url)).link;
}

async function runJson<T>(...args: string[]): Promise<T> {
  const { stdout, stderr } = await runCli([...args, '--json', ...database]);
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout) as T;
}

/** A run of an agent that ends with the answer to the user. */
async function record(url: string, key: string): Promise<void> {
  const startMs = Date.now() - 20_000;
  const shared = { feature_name: 'support', user_identifier: 'user-17', run_id: 'run-4411' };
  const step = (model: string, atMs: number, latency_ms: number, more: object = {}) => ({
    model,
    started_at: new Date(startMs + atMs).toISOString(),
    latency_ms,
    cost_usd: latency_ms / 1_000_000,
    ...shared,
    environment: 'production',
    ...more,
  });
  const failed = { error_message: '429 rate limit reached', error_type: 'rate_limit' };
  const traces = [
    report,
    step('gpt-4o-mini', 0, 640),
    step('text-embedding-3-small', 700, 210),
    step('claude-sonnet-4', 960, 180, failed),
    step('claude-sonnet-4', 2_200, 2_140, conversation),
  ];
  const reply = await fetch(`${url}/traces/batch`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ traces }),
  });
  if (reply.status !== 201) throw new Error(await reply.text());
}
