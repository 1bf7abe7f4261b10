import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';
import type { Browser } from 'playwright-core';
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

export type FoundBrowser = { browser: Browser } | { missing: string };

/** Debian's Chromium, installed where that is possible; or the reason why there is none. */
export async function findBrowser(): Promise<FoundBrowser> {
  if (!existsSync(program)) {
    const missing = needProgram('chromium');
    if (missing !== null) return { missing };
  }
  return { browser: await chromium.launch({ executablePath: program, args }) };
}
