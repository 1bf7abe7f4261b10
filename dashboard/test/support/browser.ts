import { after } from 'node:test';
import { chromium } from 'playwright-core';
import type { Browser } from 'playwright-core';
import { needProgram } from '../../../server/test/support/debian.ts';

/** The same engine without a window around the page takes two thirds of the processor time. The complete browser is used if there is no other. */
const programs = ['chromium-headless-shell', 'chromium'];

/**
 * Nothing of the window around the page is needed, nor a renderer that starts in advance: the address bar alone would take a second
 * of processor time in every test. The list replaces the whole switch, so it also names what playwright turns off.
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
  'SpareRendererForSitePerProcess',
  'Translate',
];

/** Headless, and without requests of its own to any host. */
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

export type FoundBrowser = { browser: Browser } | { missing: string };

/** Debian's Chromium, installed if possible; or the reason why there is none. */
export async function findBrowser(): Promise<FoundBrowser> {
  let missing = '';
  for (const program of programs) {
    missing = needProgram(program) ?? '';
    if (missing !== '') continue;
    return { browser: await chromium.launch({ executablePath: `/usr/bin/${program}`, args }) };
  }
  return { missing };
}

let shared: Promise<FoundBrowser> | null = null;
let users = 0;

/** One browser for all who use it at the same time. It is closed after the last of them: a file, or a bundle of files. */
export function useBrowser(): () => Promise<FoundBrowser> {
  users += 1;
  after(async () => {
    users -= 1;
    if (users > 0 || shared === null) return;
    const found = await shared;
    shared = null;
    if ('browser' in found) await found.browser.close();
  });
  return () => (shared ??= findBrowser());
}
