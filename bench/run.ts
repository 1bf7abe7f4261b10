/** `npm run bench`: all benches, or only the named ones. */
import { parseArgs } from 'node:util';
import { batch } from './benches/batch.ts';
import { fairness } from './benches/fairness.ts';
import { growth } from './benches/growth.ts';
import { hostile } from './benches/hostile.ts';
import { ingest } from './benches/ingest.ts';
import { large } from './benches/large.ts';
import { metrics } from './benches/metrics.ts';
import { mixed } from './benches/mixed.ts';
import { packed } from './benches/packed.ts';
import { pages } from './benches/pages.ts';
import { postgres } from './benches/postgres.ts';
import { prices } from './benches/prices.ts';
import { reads } from './benches/reads.ts';
import { reprice } from './benches/reprice.ts';
import { rollups } from './benches/rollups.ts';
import { spans } from './benches/spans.ts';
import { stalls } from './benches/stalls.ts';
import { start } from './benches/start.ts';
import { views } from './benches/views.ts';
import { wrapperOverhead } from './benches/wrapper-overhead.ts';
import type { Bench, Finding } from './lab/bench.ts';
import { endChildren } from './lab/children.ts';
import { fullPlan, openLab, quickPlan } from './lab/lab.ts';
import { generator, refuseWithoutGenerator } from './lab/load.ts';
import { currentCommit, describeMachine } from './lab/machine.ts';
import { comparedCheckouts } from './lab/other-checkout.ts';
import { plainTable, saveReport, updateDocs } from './lab/report.ts';
import { syncTimeMs } from './lab/sync-time.ts';

/** Benches that only read come before those that write to the same databases. */
const benches: readonly Bench[] = [
  ingest,
  batch,
  spans,
  large,
  reads,
  rollups,
  views,
  pages,
  start,
  packed,
  metrics,
  mixed,
  growth,
  prices,
  reprice,
  stalls,
  fairness,
  hostile,
  postgres,
  wrapperOverhead,
];

const help = `Usage: npm run bench -- [names] [flags]

${benches.map(({ name, asks }) => `  ${name.padEnd(16)} ${asks}`).join('\n')}

  --quick        tiny sizes and one round: only checks that everything runs
  --data DIR     keep the filled SQLite databases in this folder and use them again in the next run
  --against DIR  another checkout, or a commit, which is installed first: ingest, stalls and fairness measure both in one run
  --of DIR       with --against: compare this checkout or commit with it, instead of the code here
  --docs         write the last results of every bench to docs/performance.md, unless files have changed since the commit
  --help         show this text

Most figures are ratios to a control from the same run: the two are measured alternately, and the result is the
median of ${fullPlan.rounds} rounds. Results are written to bench/results/. The bench uses only loopback connections.`;

async function main(): Promise<void> {
  const { values: flags, positionals: names } = parseArgs({
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      data: { type: 'string' },
      against: { type: 'string' },
      of: { type: 'string' },
      docs: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (flags.help) return print(help);
  const unknown = names.find((name) => !benches.some((bench) => bench.name === name));
  if (unknown !== undefined) throw new Error(`There is no bench "${unknown}".\n\n${help}`);
  refuseWithoutGenerator();

  const chosen = names.length === 0 ? benches : benches.filter(({ name }) => names.includes(name));
  const compared = await comparedCheckouts(flags.against, flags.of);
  const lab = openLab(flags.quick ? quickPlan : fullPlan, flags.data ?? null, compared);
  process.once('exit', () => {
    endChildren();
    lab.clear();
  });
  const commit = currentCommit();
  const startMs = performance.now();
  const machine = describeMachine(syncTimeMs(lab.file('sync')));
  const findings: Finding[] = [];
  for (const bench of chosen) {
    lab.say(`${bench.name}: ${bench.asks}`);
    const own = await bench.run(lab);
    lab.say(`${plainTable(own)}\n`);
    findings.push(...own);
  }
  const minutes = Number(((performance.now() - startMs) / 60_000).toFixed(1));
  print(`${plainTable(findings)}\n\n${minutes} minutes, load generator ${generator}`);
  if (flags.quick) return;
  const measuredAt = new Date().toISOString();
  const date = measuredAt.slice(0, 10);
  const report = { commit, date, measuredAt, generator, machine, minutes, findings };
  print(`Results written to ${saveReport(report)}`);
  if (flags.docs) updateDocs(benches.map(({ name }) => name));
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(130));
await main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  // Otherwise child processes that still run would keep this process alive.
  process.exit(1);
});
