import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';
import type { Browser, BrowserServer } from 'playwright-core';
import { needProgram } from '../../../server/test/support/debian.ts';

const program = '/usr/bin/chromium';

/**
 * Of the window around the page nothing is needed: its address bar alone would cost a second of processor time in every test. The
 * list stands for the whole switch, so that it also names what playwright turns off.
 */
const unneededFeatures = [
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
  'WebUIOmniboxFullPopup',
  'AimEnabled',
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'DestroyProfileOnBrowserClose',
  'DialMediaRouteProvider',
  'GlobalMediaControls',
  'HttpsUpgrades',
  'LensOverlay',
  'MediaRouter',
  'NetworkTimeServiceQuerying',
  'OptimizationHints',
  'PaintHolding',
  'Translate',
];

/** It draws without a screen, and asks nobody but the page's own server for anything. */
const args = [
  '--no-sandbox',
  '--headless=new',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--no-first-run',
  '--disable-sync',
  `--disable-features=${unneededFeatures.join(',')}`,
];

const how = { executablePath: program, args };

/** Holds the address of the browser that all test files share. Without it each file starts its own. */
export const sharedBrowserVariable = 'TEST_BROWSER';

export type FoundBrowser = { browser: Browser } | { missing: string };

/** Debian's Chromium, installed where that is possible; or the reason why there is none. */
export async function findBrowser(): Promise<FoundBrowser> {
  const shared = process.env[sharedBrowserVariable];
  if (shared !== undefined) return { browser: await chromium.connect(shared) };
  const missing = missingProgram();
  return missing === null ? { browser: await startBrowser() } : { missing };
}

export function startBrowser(): Promise<Browser> {
  return chromium.launch(how);
}

/** A browser that several processes use through `findBrowser`; null if there is none. */
export async function serveBrowser(): Promise<BrowserServer | null> {
  return missingProgram() === null ? chromium.launchServer({ ...how, host: '127.0.0.1' }) : null;
}

function missingProgram(): string | null {
  return existsSync(program) ? null : needProgram('chromium');
}
