import type { BrowserServer } from 'playwright-core';
import { serveBrowser, sharedBrowserVariable } from './browser.ts';

/** For `node --test --test-global-setup`: one Chromium for all files of the run. Each test has its own context in it. */
let server: BrowserServer | null = null;

export async function globalSetup(): Promise<void> {
  server = await serveBrowser();
  if (server !== null) process.env[sharedBrowserVariable] = server.wsEndpoint();
}

export async function globalTeardown(): Promise<void> {
  const running = server;
  // If this fails, Node calls it again and again.
  server = null;
  await running?.close();
}
