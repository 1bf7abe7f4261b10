import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { plainTraces, record } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import { eventually } from './support/wait.ts';

const { inBrowser } = openStage();

interface Walk {
  /** Names of what the Tab key came to, in order. */
  names: string[];
  /** Those of them that look the same with the focus as without it. */
  unmarked: string[];
  /** Those that were out of sight when they had the focus. */
  unseen: string[];
  /** What can be pressed but was not come to. */
  missed: string[];
}

/** Presses Tab until it comes round, and looks at each place. */
async function walk(page: Page): Promise<Walk> {
  await page.evaluate(prepareWalk);
  const found: Walk = { names: [], unmarked: [], unseen: [], missed: [] };
  for (let step = 0; step < 200; step += 1) {
    await page.keyboard.press('Tab');
    const place = await page.evaluate(lookAtFocus);
    if (place === 'round') break;
    // Between the last and the first the browser's own bar has the focus.
    if (place === 'nowhere') continue;
    found.names.push(place.name);
    if (!place.isMarked) found.unmarked.push(place.name);
    if (!place.isInSight) found.unseen.push(place.name);
  }
  found.missed = await page.evaluate(notVisited);
  return found;
}

interface WalkState {
  looks: Map<Element, string>;
  visited: Set<Element>;
  lookOf(element: Element): string;
}

/** Notes how everything looks without the focus. Runs in the page. */
function prepareWalk(): void {
  (document.activeElement as HTMLElement | null)?.blur();
  const lookOf = (element: Element): string => {
    // A radio button that is not seen itself is marked at its label.
    return [element, element.nextElementSibling]
      .map((one) => (one === null ? null : getComputedStyle(one)))
      .map((style) =>
        style === null
          ? ''
          : `${style.outlineStyle} ${style.outlineWidth} ${style.outlineColor} ${style.boxShadow}`,
      )
      .join();
  };
  const all = document.querySelectorAll('a[href], button, input, select, [tabindex="0"]');
  const looks = new Map([...all].map((element) => [element, lookOf(element)]));
  Object.assign(globalThis, { walkState: { looks, visited: new Set(), lookOf } });
}

/** Runs in the page. */
function lookAtFocus() {
  const { looks, visited, lookOf } = (globalThis as unknown as { walkState: WalkState }).walkState;
  const element = document.activeElement;
  if (element === null || element === document.body) return 'nowhere';
  if (visited.has(element)) return 'round';
  visited.add(element);
  const name =
    element.getAttribute('aria-label') ??
    (element.closest('label') ?? element).textContent?.trim().slice(0, 40) ??
    '';
  const shown = element.matches('input[type=radio]') ? element.closest('label') : element;
  const box = (shown ?? element).getBoundingClientRect();
  const isInSight =
    box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  return { name: name || element.id, isMarked: looks.get(element) !== lookOf(element), isInSight };
}

/** Of radio buttons the Tab key only comes to the one that is chosen. Runs in the page. */
function notVisited(): string[] {
  const { looks, visited } = (globalThis as unknown as { walkState: WalkState }).walkState;
  return [...looks.keys()]
    .filter((element) => element.isConnected && !visited.has(element))
    .filter((element) => !element.matches(':disabled, input[type=radio]:not(:checked)'))
    .map((element) => element.getAttribute('aria-label') ?? element.textContent ?? '');
}

function check({ unmarked, unseen, missed }: Walk): void {
  assert.deepEqual({ unmarked, unseen, missed }, { unmarked: [], unseen: [], missed: [] });
}

test(
  'the Tab key reaches every control in every view, and the focus is always visible',
  inBrowser(async ({ page, home, service, key, go, open }) => {
    await page.goto(home);
    await page.getByLabel('API key').waitFor();
    check(await walk(page));

    await open();
    await page.getByText('Waiting for the first trace').waitFor();
    check(await walk(page));

    const [trace] = await record(service, key, [
      {
        model: 'm',
        input: '{"a":1}',
        output: 'x'.repeat(50_000),
        error_message: 'no',
        run_id: 'r',
        session_id: 's',
      },
      ...plainTraces(2),
    ]);
    await page.getByRole('table', { name: /^Features/ }).waitFor();
    const overview = await walk(page);
    check(overview);
    assert.ok(overview.names.length >= 18, overview.names.join());

    await go('#/?model=gpt-4o&feature_name=chat&show=table');
    await page.getByRole('list', { name: 'Filters' }).waitFor();
    await page.getByRole('table', { name: /^Models/ }).waitFor();
    check(await walk(page));
    await go('#/users?model=gpt-4o');
    await page.getByRole('table', { name: /^Users/ }).waitFor();
    check(await walk(page));

    await go('#/traces');
    await page.getByRole('table').waitFor();
    check(await walk(page));
    await go('#/traces?feature_name=chat');
    await page.getByText('No more traces.').waitFor();
    check(await walk(page));

    await go(`#/traces/${trace?.id}`);
    await page.getByRole('region', { name: 'Output' }).waitFor();
    check(await walk(page));
  }),
);

/** Tab by Tab to something with this name. */
async function tabTo(page: Page, name: string | RegExp): Promise<void> {
  const wanted = typeof name === 'string' ? new RegExp(`^${name}`) : name;
  for (let step = 0; step < 300; step += 1) {
    await page.keyboard.press('Tab');
    const focused = await page.evaluate(() => {
      const element = document.activeElement;
      // The name of a radio button is in its label.
      const named = element?.closest('label') ?? element;
      return element?.getAttribute('aria-label') ?? named?.textContent ?? '';
    });
    if (wanted.test(focused)) return;
  }
  assert.fail(`Tab never came to ${String(name)}`);
}

test(
  'signing in, skipping to the content, choosing, paging, opening a trace and signing out work without a mouse',
  inBrowser(async ({ page, home, service, key }) => {
    await record(service, key, plainTraces(60));
    await page.goto(home);
    await page.getByLabel('API key').waitFor();
    await page.keyboard.type(key);
    await page.keyboard.press('Enter');
    await page.getByRole('table', { name: /^Models/ }).waitFor();

    await tabTo(page, 'Skip to content');
    await page.keyboard.press('Enter');
    await eventually(async () =>
      assert.equal(await page.evaluate(() => document.activeElement?.tagName), 'MAIN'),
    );
    assert.equal(page.url(), home, 'the address stays');
    // The next one is within the content: the range.
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement?.tagName), 'SELECT');
    await tabTo(page, 'Charts');
    await page.keyboard.press('ArrowRight');
    await page.getByRole('table', { name: /^Calls, errors/ }).waitFor();
    assert.equal(page.url(), `${home}#/?show=table`);

    await tabTo(page, /^Traces$/);
    await page.keyboard.press('Enter');
    await page.getByRole('table', { name: /^Traces/ }).waitFor();
    await eventually(async () =>
      assert.equal(
        await page.evaluate(() => document.activeElement?.textContent),
        'Traces',
        'the heading of the new view has the focus',
      ),
    );
    await tabTo(page, 'Next page');
    await page.keyboard.press('Enter');
    await page.getByText('51–60 of 60').waitFor();
    await tabTo(page, /, gpt-4o$/);
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: 'Input' }).getByText('question 10').waitFor();
    await tabTo(page, /All traces$/);
    await page.keyboard.press('Enter');
    await page.getByText('51–60 of 60').waitFor();
    await tabTo(page, 'Sign out');
    await page.keyboard.press('Enter');
    await page.getByLabel('API key').waitFor();
  }),
);
