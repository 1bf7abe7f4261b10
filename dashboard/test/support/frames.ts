import assert from 'node:assert/strict';
import type { Browser, Locator, Page } from 'playwright-core';
import { recordOne } from './seed.ts';
import type { Visit } from './stage.ts';

/** What the browser writes about one thing that happened. Times are in microseconds; `tdur` is processor time. */
interface TraceEvent {
  name: string;
  pid: number;
  tid: number;
  ts: number;
  dur?: number;
  tdur?: number;
  args?: { name?: string };
}

const task = 'ThreadControllerImpl::RunTask';
const controlMark = 'control';
const controls = 3;

/** From now on the browser notes how much processor time each task of the page takes. */
export async function watchTasks({ t, page }: Visit): Promise<void> {
  const browser = browserOf(page);
  await startTrace(browser);
  // Also if the test fails; otherwise no later test could be watched.
  t.after(async () => void (await browser.stopTracing().catch(() => {})));
}

export interface LongestTask {
  /** The processor time of the longest task so far, during which the page could not respond. */
  cpuMs: number;
  /** The same as a multiple of a fixed calculation in the same page, so that it does not depend on how fast or busy the machine is. */
  controls: number;
}

/** The longest task since the watch began or was read. */
export async function longestTask(page: Page): Promise<LongestTask> {
  const browser = browserOf(page);
  // A task is noted after it has ended, and two frames later all earlier tasks have.
  await page.evaluate(
    () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
  );
  for (let i = 0; i < controls; i++) await page.evaluate(calculate, controlMark);
  const trace = JSON.parse((await browser.stopTracing()).toString()) as {
    traceEvents: TraceEvent[];
  };
  await startTrace(browser);
  return readTrace(trace.traceEvents);
}

/** Fails if a task of the page took longer than so many controls. A control takes about 40 ms. */
export async function assertNotBlocked({ t, page }: Visit, controlsMax: number): Promise<void> {
  const longest = await longestTask(page);
  const words = `${longest.cpuMs.toFixed(0)} ms of processor time, ${longest.controls.toFixed(1)} times the control`;
  t.diagnostic(`longest task ${words}`);
  assert.ok(longest.controls < controlsMax, `the page was blocked for ${words}`);
}

function browserOf(page: Page): Browser {
  return page.context().browser() ?? assert.fail('the page has no browser');
}

function startTrace(browser: Browser): Promise<void> {
  return browser.startTracing(undefined, { categories: ['toplevel', 'blink.user_timing'] });
}

/** Runs in the page. */
function calculate(mark: string): number {
  performance.mark(mark);
  let sum = 0;
  for (let i = 0; i < 10_000_000; i++) sum = (sum + i * 7) % 1_000_003;
  return sum;
}

function readTrace(events: readonly TraceEvent[]): LongestTask {
  const threadOf = ({ pid, tid }: TraceEvent): string => `${pid} ${tid}`;
  const marks = events.filter(({ name }) => name === controlMark);
  const pageThread = threadOf(marks[0] ?? assert.fail('the trace has no control'));
  // A task that was under way at the start or the end of the trace has no processor time: it is one of the watch itself.
  const tasks = events.filter(
    (event) => event.name === task && threadOf(event) === pageThread && event.tdur !== undefined,
  );
  const isControl = ({ ts, dur = 0 }: TraceEvent): boolean =>
    marks.some((mark) => mark.ts >= ts && mark.ts <= ts + dur);
  const cpuMsOf = ({ tdur = 0 }: TraceEvent): number => tdur / 1_000;
  const controlsMs = tasks.filter(isControl).map(cpuMsOf);
  assert.ok(controlsMs.length >= 1, 'the trace has no processor time');
  const controlMs = Math.min(...controlsMs);
  const cpuMs = Math.max(0, ...tasks.filter((event) => !isControl(event)).map(cpuMsOf));
  return { cpuMs, controls: cpuMs / controlMs };
}

/** Opens a trace from the list, as people do, so that only the trace itself is measured. Returns its input. */
export async function openWatched(
  visit: Visit,
  fields: Parameters<typeof recordOne>[2],
): Promise<Locator> {
  const { page, service, key, open, go } = visit;
  const trace = await recordOne(service, key, fields);
  await open('#/traces');
  await page.getByRole('table').waitFor();
  await watchTasks(visit);
  await go(`#/traces/${trace.id}`);
  const input = page.getByRole('region', { name: 'Input' });
  await input.waitFor();
  return input;
}
