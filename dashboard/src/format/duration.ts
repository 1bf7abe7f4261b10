import { exactCount } from './count.ts';

/** `12,345 ms`. */
export function exactDuration(ms: number): string {
  return `${exactCount(ms)} ms`;
}

/** `840 ms`, `1.24 s`, `12.3 s`, `2 min 5 s`, `1 h 5 min`. */
export function shortDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 9_995) return `${(ms / 1_000).toFixed(2)} s`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return pair(seconds, 60, 'min', 's');
  return pair(Math.round(seconds / 60), 60, 'h', 'min');
}

/** For the steps of a chart, which are round: `0`, `500 ms`, `1.5 s`. */
export function axisDuration(ms: number): string {
  if (ms === 0) return '0';
  if (ms < 1_000) return `${Number(ms.toPrecision(3))} ms`;
  return ms < 60_000 ? `${Number((ms / 1_000).toPrecision(3))} s` : shortDuration(ms);
}

function pair(value: number, size: number, large: string, small: string): string {
  const rest = value % size;
  const first = `${exactCount(Math.floor(value / size))} ${large}`;
  return rest === 0 ? first : `${first} ${rest} ${small}`;
}
