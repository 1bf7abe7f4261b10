import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import { withTool } from '../guarantees/crash-lab.ts';
import { assertRefused, toolInFolder } from './helpers.ts';

const tool = toolInFolder({ after });
const at = (day: number): number => Date.UTC(2026, 10, day, 12) * 1000;

before(async () => {
  await withTool(tool.path, async (store) => {
    const { team } = await store.ensureTeam('search', 1, 'Asia/Kathmandu');
    const drafts = [
      { model: 'a', cost_usd: 0.1, latency_ms: 10, started_at: at(1), user_identifier: 'x, "y"' },
      { model: 'a', cost_usd: 0.2, latency_ms: 30, started_at: at(2) },
      { model: 'b', cost_usd: 1e-12, started_at: at(2), status: 'error' as const },
      { model: 'c', started_at: at(3), metadata: '{"tier":"gold"}' },
    ].map((fields) => ({ ...draftTrace({ model: 'm' }), ...fields }));
    await store.append([{ teamId: team.id, drafts }]);
  });
});

interface ReportJson {
  from: string;
  time_zone: string;
  rows: Record<string, unknown>[];
  other: Record<string, unknown>[];
  totals: Record<string, unknown>;
}

const november = ['--from', '2026-11-01', '--to', '2026-11-30'];

test('prints a table with the rest and the totals', async () => {
  const { code, stdout } = await tool.run(
    'query',
    '--group-by',
    'model',
    ...november,
    '--limit',
    '1',
  );
  assert.equal(code, 0);
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/));
  assert.deepEqual(
    lines.map((cells) => cells.slice(0, 4)),
    [
      ['MODEL', 'CALL_COUNT', 'ERROR_COUNT', 'TOTAL_COST_USD'],
      ['a', '2', '0', '0.3'],
      ['(other)', '2', '1', '0.000000000001'],
      ['(total)', '4', '1', '0.300000000001'],
    ],
  );
});

test('--json prints what the API returns, with every digit', async () => {
  const { stdout } = await tool.run('query', '--interval', 'day', '--last=9999d', '--json');
  assert.match(stdout, /"totals":\{"call_count":4,.*"total_cost_usd":0\.300000000001,/);
  const report = await tool.json<ReportJson>(
    'query',
    '--group-by=model',
    '--interval=day',
    ...november,
  );
  assert.equal(report.time_zone, 'Asia/Kathmandu');
  assert.equal(report.from, '2026-11-01T00:00:00+05:45');
  assert.deepEqual(
    report.rows.map(({ start, model, call_count }) => [start, model, call_count]),
    [
      ['2026-11-01T00:00:00+05:45', 'a', 1],
      ['2026-11-02T00:00:00+05:45', 'a', 1],
      ['2026-11-02T00:00:00+05:45', 'b', 1],
      ['2026-11-03T00:00:00+05:45', 'c', 1],
    ],
  );
});

test('--csv prints every measure, and quotes what must be quoted', async () => {
  const { stdout } = await tool.run(
    'query',
    '--group-by',
    'user_identifier',
    '--model',
    'a',
    '--csv',
  );
  const lines = stdout.trimEnd().split('\r\n');
  assert.match(
    lines[0] ?? '',
    /^user_identifier,call_count,error_count,success_rate,total_cost_usd,/,
  );
  assert.match(lines[1] ?? '', /^,1,0,100,0\.2,/);
  assert.match(lines[2] ?? '', /^"x, ""y""",1,0,100,0\.1,0,0,0,0,0,0,10,10,10,10,10$/);
});

test('--csv: no label is a formula for a spreadsheet, and numbers stay numbers', async (t) => {
  const other = toolInFolder(t);
  const labels = ['=HYPERLINK("http://evil.test")', '+1', '-1+1', '@SUM(A1)', '\t=1', 'a;=1'];
  await withTool(other.path, async (store) => {
    const { team } = await store.ensureTeam('search', 1);
    const drafts = labels.map((feature_name, i) =>
      draftTrace({ model: '=1', feature_name, cost_usd: 10 ** -i }),
    );
    await store.append([{ teamId: team.id, drafts }]);
  });
  const flags = ['--group-by', 'feature_name,model', '--order=-total_cost_usd', '--csv'];
  const { stdout } = await other.run('query', ...flags);
  assert.deepEqual(
    stdout.split('\r\n').map((line) => line.replace(/,0,100,(.*?),.*/, ' $1')),
    [
      stdout.split('\r\n')[0] ?? '',
      `"'=HYPERLINK(""http://evil.test"")",'=1,1 1`,
      `'+1,'=1,1 0.1`,
      `'-1+1,'=1,1 0.01`,
      `'@SUM(A1),'=1,1 0.001`,
      `'\t=1,'=1,1 0.0001`,
      `"a;=1",'=1,1 0.00001`,
      '',
    ],
  );
});

describe('filters', () => {
  const rows: [flags: string[], calls: number][] = [
    [['--model', 'a'], 2],
    [['--status', 'error'], 1],
    [['--user-identifier='], 3],
    [['--metadata', 'tier=gold'], 1],
    [['--metadata', 'tier='], 3],
    [['--from', '2026-11-02', '--to', '2026-11-02'], 2],
    [['--last', '1h'], 0],
    [[], 4],
  ];
  for (const [flags, calls] of rows) {
    test(flags.join(' ') || 'none', async () => {
      const { totals } = await tool.json<ReportJson>('query', ...flags);
      assert.equal(totals['call_count'], calls);
    });
  }
});

describe('what it refuses, and why', () => {
  const rows: [flags: string[], says: RegExp][] = [
    [['--group-by', 'color'], /^--group-by must be one or two of model, feature_name, .*comma\.\n/],
    [['--from', 'yesterday'], /^--from must be a date such as 2026-11-04/],
    [['--last', '30'], /^--last must be a number of hours or days/],
    [['--last', '7d', '--to', '2026-11-01'], /^--last must not be combined with from or to\.\n/],
    [['--limit', '5'], /^--limit must be combined with --group-by\.\n/],
    [['--status', 'ok'], /^--status must be "success" or "error"\.\n/],
    [['--metadata', 'gold'], /^--metadata must have the form NAME=VALUE\.\n/],
    [['--csv', '--json'], /^Use either --csv or --json\.\n/],
    [['--grup-by', 'model'], /^Unknown flag --grup-by\. Did you mean --group-by\?/],
  ];
  for (const [flags, says] of rows) {
    test(flags.join(' '), async () => {
      assertRefused(await tool.run('query', ...flags), 2, says);
    });
  }
  test('a database without teams, and one with several', async (t) => {
    const other = toolInFolder(t);
    await other.run('teams', 'create', 'one');
    assert.equal((await other.run('query')).code, 0);
    await other.run('teams', 'create', 'two');
    assertRefused(
      await other.run('query'),
      1,
      /^Choose a team with --team\. To list the teams, run: /,
    );
    assert.equal((await other.run('query', '--team', 'two')).code, 0);
    assertRefused(await toolInFolder(t).run('query'), 1, /does not exist/);
  });
});
