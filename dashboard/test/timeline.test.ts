import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ListedTrace } from '../../client/src/reading.ts';
import { timelineOf } from '../src/trace/timeline.ts';
import { record, recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import { eventually } from './support/wait.ts';

const { inBrowser } = openStage();

test('calls are placed by when they began and how long they took', () => {
  const call = (id: string, fields: Partial<ListedTrace>) =>
    ({ id, latency_ms: null, created_at: '2026-11-14T10:00:10Z', ...fields }) as ListedTrace;
  const calls = timelineOf([
    call('second', { started_at: '2026-11-14T10:00:02Z', latency_ms: 8_000 }),
    call('first', { started_at: '2026-11-14T10:00:00Z', latency_ms: 1_000 }),
    // Recorded when it had ended.
    call('third', { created_at: '2026-11-14T10:00:06Z', latency_ms: 1_000 }),
  ]);
  assert.deepEqual(
    calls.map(({ trace, offsetMs, left, width }) => [trace.id, offsetMs, left, width]),
    [
      ['first', 0, 0, 0.1],
      ['second', 2_000, 0.2, 0.8],
      ['third', 5_000, 0.5, 0.1],
    ],
  );
  assert.deepEqual(timelineOf([]), []);
  assert.equal(timelineOf([call('only', {})])[0]?.width, 0);
});

test(
  'a trace shows its further fields, and the other calls of its run and session as a timeline',
  inBrowser(async ({ page, home, service, key, open }) => {
    const startMs = Date.now() - 60_000;
    const at = (ms: number): string => new Date(startMs + ms).toISOString();
    const shared = { model: 'planner', session_id: 's <b>1</b>', feature_name: 'agent' };
    const run = { ...shared, run_id: 'run-1' };
    const [first, second, , elsewhere] = await record(service, key, [
      { ...run, started_at: at(0), latency_ms: 1_000, cost_usd: 0.01 },
      {
        ...run,
        model: 'worker',
        started_at: at(1_500),
        latency_ms: 2_500,
        response_model: 'worker-2026',
        environment: 'production',
        provider: 'openai',
        prompt_tokens: 100,
        cache_read_tokens: 60,
        cache_write_tokens: 5,
        completion_tokens: 50,
        reasoning_tokens: 20,
        ttft_ms: 300,
        error_message: 'slow down',
        error_type: 'rate_limit',
        metadata: { customer: '<img src=x onerror=alert(1)>', plan: 'pro' },
      },
      { ...run, started_at: at(4_500), latency_ms: 500 },
      { ...shared, run_id: 'run-2', started_at: at(9_000), latency_ms: 10 },
    ]);
    await recordOne(service, key, { session_id: 'another' });
    assert.ok(first !== undefined && second !== undefined && elsewhere !== undefined);
    await open(`#/traces/${second.id}`);
    const facts = await page.locator('.facts').innerText();
    for (const words of [
      '60 cached',
      '5 written to the cache',
      '20 for reasoning',
      '300 ms',
      'worker-2026',
      'production',
      'openai',
      'rate_limit',
      's <b>1</b>',
      'run-1',
    ])
      assert.ok(facts.includes(words), `${words} in ${facts}`);
    const metadata = page.getByRole('region', { name: 'Metadata' });
    assert.match(
      await metadata.innerText(),
      /customer\s+<img src=x onerror=alert\(1\)>\s+plan\s+pro/,
    );

    const table = page.getByRole('table', { name: /^Calls of this/ });
    const began = (): Promise<string[]> => table.getByRole('rowheader').allTextContents();
    await eventually(async () =>
      assert.deepEqual(await began(), ['+0 ms, planner', '+1.50 s', '+4.50 s, planner']),
    );
    const places = await table.locator('.timeline-bar').evaluateAll((bars) =>
      bars.map((bar) => {
        const track = bar.parentElement?.getBoundingClientRect();
        const box = bar.getBoundingClientRect();
        const width = track?.width ?? 1;
        return [(box.left - (track?.left ?? 0)) / width, box.width / width];
      }),
    );
    for (const [index, wanted] of [
      [0, 0.2],
      [0.3, 0.5],
      [0.9, 0.1],
    ].entries()) {
      for (const [part, value] of wanted.entries())
        assert.ok(Math.abs((places[index]?.[part] ?? NaN) - value) < 0.02, `${index} ${part}`);
    }
    await page.getByRole('group', { name: 'Calls of the same' }).getByText('Session').click();
    await eventually(async () => assert.equal((await began()).length, 4));
    await table.getByRole('rowheader').getByRole('link').last().click();
    await page.waitForURL(`${home}#/traces/${elsewhere.id}`);
    await page.getByRole('group', { name: 'Calls of the same' }).getByText('Session').click();
    await page.getByRole('link', { name: 'Show as a list' }).click();
    await page.getByText('4 traces, newest first').waitFor();
    await page.getByRole('list', { name: 'Filters' }).getByText('s <b>1</b>').waitFor();
    await page.goBack();
    await page.getByRole('group', { name: 'Calls of the same' }).getByText('Session').click();
    await table.getByRole('link', { name: 'worker', exact: true }).click();
    await page.waitForURL(`${home}#/traces?model=worker&session_id=s+%3Cb%3E1%3C%2Fb%3E`);
    await page.getByText('1 trace, newest first').waitFor();
  }),
);

test(
  'a trace without a session or run has no timeline, and its names lead to their traces',
  inBrowser(async ({ page, home, service, key, open }) => {
    const trace = await recordOne(service, key, { feature_name: 'a & b', user_identifier: 'u' });
    await open(`#/traces/${trace.id}`);
    await page.getByRole('region', { name: 'Input' }).waitFor();
    assert.equal(await page.getByText('Calls of this').count(), 0);
    await page.getByRole('link', { name: 'a & b' }).click();
    await page.waitForURL(`${home}#/traces?feature_name=a+%26+b`);
    await page.getByText('1 trace, newest first').waitFor();
  }),
);
