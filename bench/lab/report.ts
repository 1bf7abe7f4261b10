import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { goalText, isMet } from './bench.ts';
import type { Finding } from './bench.ts';
import { drawChart } from './chart.ts';
import type { Machine } from './machine.ts';

export interface Report {
  commit: string;
  date: string;
  generator: string;
  machine: Machine;
  minutes: number;
  findings: readonly Finding[];
}

const root = fileURLToPath(new URL('../../', import.meta.url));

export function saveReport(report: Report): string {
  const folder = join(root, 'bench/results');
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${report.date}-${report.commit.replace('+', '-changed')}.json`);
  writeFileSync(path, `${JSON.stringify(report, null, 2)}\n`);
  return path;
}

/** Updates the table and the chart in the documentation. Only for a run of all benches: a partial table would mislead. */
export function updateDocs(report: Report): void {
  const page = join(root, 'docs/performance.md');
  const text = readFileSync(page, 'utf8');
  const { machine } = report;
  const where =
    `Commit ${report.commit}, ${report.date}: ${machine.cores} cores of ${machine.cpu} (${machine.arch}), ` +
    `${machine.memoryGb} GB, Node.js ${machine.node}, disk sync ${machine.syncMs} ms, load generator ${report.generator}.`;
  const made = `${where}\n\n${markdownTable(report.findings)}`;
  const filled = text.replace(
    /(<!-- made by the bench -->\n)[^]*(<!-- end -->)/,
    (_, begin: string, end: string) => `${begin}${made}\n${end}`,
  );
  writeFileSync(page, filled);
  mkdirSync(join(root, 'docs/images'), { recursive: true });
  writeFileSync(join(root, 'docs/images/performance.svg'), drawChart(report.findings));
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
