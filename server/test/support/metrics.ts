import assert from 'node:assert/strict';
import type { TestService } from './service.ts';

export interface Scrape {
  text: string;
  /** The value of a series, such as `tracetally_traces_stored_total` or `up{job="a"}` with labels in the order of the text. */
  value(series: string): number;
  /** All series of a metric. */
  series(name: string): string[];
}

export function parseMetrics(text: string): Scrape {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const values = new Map(
    lines.map((line): [string, number] => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
  assert.equal(values.size, lines.length, 'a series appears twice');
  return {
    text,
    value: (series) => values.get(series) ?? 0,
    series: (name) => [...values.keys()].filter((key) => key.split('{', 1)[0] === name),
  };
}

export async function scrape({ metricsUrl }: Pick<TestService, 'metricsUrl'>): Promise<Scrape> {
  const response = await fetch(metricsUrl ?? assert.fail('metrics are not served'));
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return parseMetrics(text);
}
