import { csvText } from '../core/csv.ts';
import type { Cell } from '../core/csv.ts';
import type { Measures } from '../core/measures.ts';
import type { Tally } from '../core/query.ts';
import { recordNames, recordText } from '../core/record-fields.ts';
import type { RecordName } from '../core/record-fields.ts';
import { formatLocal } from '../http/analytics-json.ts';
import type { Answered } from '../http/report.ts';
import { alignColumns } from './table.ts';

/** The measures of the table; CSV has all of them. */
const shownNames: readonly RecordName[] = [
  'call_count',
  'error_count',
  'total_cost_usd',
  'prompt_tokens',
  'completion_tokens',
  'avg_latency_ms',
  'p50_latency_ms',
  'p95_latency_ms',
  'p99_latency_ms',
];

/** For people: one line per row, then what is past the limit, then the totals. */
export function reportTable({ report, groupBy, calendar }: Answered): string {
  const { rows, other, totals } = report;
  const hasStart = rows.some(({ startUs }) => startUs !== null);
  const valuesOf = (measures: Measures): string[] =>
    shownNames.map((field) => dashIfNull(recordText(field, measures)));
  const startOf = ({ startUs }: Tally): string[] =>
    hasStart ? [startUs === null ? '' : formatLocal(startUs, calendar)] : [];
  const named = (text: string): string[] => [text, ...groupBy.slice(1).map(() => '')];
  const lines = [
    [...(hasStart ? ['START'] : []), ...groupBy, ...shownNames].map((text) => text.toUpperCase()),
    ...rows.map((row) => [
      ...startOf(row),
      ...row.group.map((value) => value ?? '-'),
      ...valuesOf(row.measures),
    ]),
    ...other.map((rest) => [...startOf(rest), ...named('(other)'), ...valuesOf(rest.measures)]),
  ];
  if (rows.length + other.length > 1) {
    const label =
      groupBy.length > 0 ? [...(hasStart ? [''] : []), ...named('(total)')] : ['(total)'];
    lines.push([...label, ...valuesOf(totals)]);
  }
  return alignColumns(lines);
}

function dashIfNull(text: string): string {
  return text === 'null' ? '-' : text;
}

/** The rows, without what is past the limit and without the last newline. */
export function reportCsv({ report, groupBy, calendar }: Answered): string {
  const hasStart = report.rows.some(({ startUs }) => startUs !== null);
  const rows = report.rows.map(({ startUs, group, measures }): Cell[] => [
    ...(hasStart && startUs !== null ? [formatLocal(startUs, calendar)] : []),
    ...group,
    ...recordNames.map((field) => exactly(recordText(field, measures))),
  ]);
  const heading = [...(hasStart ? ['start'] : []), ...groupBy, ...recordNames];
  return csvText(heading, rows).slice(0, -'\n'.length);
}

function exactly(text: string): Cell {
  return text === 'null' ? null : { digits: text };
}
