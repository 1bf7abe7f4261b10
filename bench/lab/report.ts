import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { goalText, isMet } from './bench.ts';
import type { Finding } from './bench.ts';
import { drawChart } from './chart.ts';
import { changedMark } from './machine.ts';
import type { Machine } from './machine.ts';

/** What one commit showed on one day, maybe in several runs. */
export interface Report {
  commit: string;
  date: string;
  /** When the last run ended. Reports from before this field have only a date. */
  measuredAt?: string;
  generator: string;
  machine: Machine;
  minutes: number;
  findings: readonly Finding[];
}

const root = fileURLToPath(new URL('../../', import.meta.url));
const results = join(root, 'bench/results');

/** Adds to what earlier runs of other benches have shown of the same commit on the same day. */
export function saveReport(report: Report): string {
  mkdirSync(results, { recursive: true });
  const name = `${report.date}-${report.commit.replace(changedMark, '-changed')}.json`;
  const path = join(results, name);
  const known = existsSync(path) ? readReport(path) : null;
  const measured = benchesOf(report);
  const others = known?.findings.filter(({ bench }) => !measured.has(bench)) ?? [];
  const minutes = Number((report.minutes + (known?.minutes ?? 0)).toFixed(1));
  const whole = { ...report, minutes, findings: [...others, ...report.findings] };
  writeFileSync(path, `${JSON.stringify(whole, null, 2)}\n`);
  return path;
}

function readReport(path: string): Report {
  return JSON.parse(readFileSync(path, 'utf8')) as Report;
}

function benchesOf({ findings }: Report): Set<string> {
  return new Set(findings.map(({ bench }) => bench));
}

/** A bench as it was last measured on a commit without changed files. */
interface Latest {
  report: Report;
  findings: readonly Finding[];
}

/** Updates the table and the chart in the documentation: the last findings of each bench, with the commit that they are of. */
export function updateDocs(names: readonly string[]): void {
  const all = globSync('*.json', { cwd: results })
    .map((file) => readReport(join(results, file)))
    .filter(({ commit }) => !commit.endsWith(changedMark))
    .sort((a, b) => (timeOf(a) < timeOf(b) ? 1 : -1));
  const latest = names.flatMap((name): Latest[] => {
    const report = all.find((one) => benchesOf(one).has(name));
    return report ? [{ report, findings: report.findings.filter((f) => f.bench === name) }] : [];
  });
  const findings = latest.flatMap((one) => one.findings);
  const page = join(root, 'docs/performance.md');
  const made = `${whereMeasured(latest)}\n\n${markdownTable(findings)}`;
  const filled = readFileSync(page, 'utf8').replace(
    /(<!-- made by the bench -->\n)[^]*(<!-- end -->)/,
    (_, begin: string, end: string) => `${begin}${made}\n${end}`,
  );
  writeFileSync(page, filled);
  mkdirSync(join(root, 'docs/images'), { recursive: true });
  writeFileSync(join(root, 'docs/images/performance.svg'), drawChart(findings));
}

function timeOf({ measuredAt, date }: Report): string {
  return measuredAt ?? date;
}

/** One line for each commit, with the benches that were measured there. */
function whereMeasured(latest: readonly Latest[]): string {
  const byReport = Map.groupBy(latest, ({ report }) => report);
  return [...byReport]
    .map(([{ commit, date, machine, generator }, own]) => {
      const names = own.map(({ findings: [first] }) => `\`${first?.bench}\``).join(', ');
      return (
        `- Commit ${commit}, ${date}: ${names}. ${machine.cores} cores of ${machine.cpu} (${machine.arch}), ` +
        `${machine.memoryGb} GB, Node.js ${machine.node}, disk sync ${machine.syncMs} ms, load generator ${generator}.`
      );
    })
    .join('\n');
}

function markdownTable(findings: readonly Finding[]): string {
  const rows = findings.map((finding) => {
    const mark = markOf(finding);
    return `| \`${finding.bench}\` | ${finding.what} | ${valueText(finding)} | ${goalText(finding.goal)} | ${mark} | ${finding.detail} |`;
  });
  return ['| bench | what | measured | goal | | |', '|---|---|---|---|---|---|', ...rows].join(
    '\n',
  );
}

/** The same for a terminal. */
export function plainTable(findings: readonly Finding[]): string {
  const cells = findings.map((finding) => [
    finding.bench,
    finding.what,
    valueText(finding),
    goalText(finding.goal),
    markOf(finding),
    finding.detail,
  ]);
  const widths = [0, 1, 2, 3, 4].map((i) => Math.max(...cells.map((row) => row[i]?.length ?? 0)));
  return cells
    .map((row) => row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  '))
    .join('\n');
}

function markOf(finding: Finding): string {
  const met = isMet(finding);
  return met === null ? '' : met ? 'met' : 'missed';
}

function valueText({ value, unit }: Finding): string {
  const digits = value >= 100 ? 0 : 2;
  return `${value.toFixed(digits)} ${unit}`;
}
