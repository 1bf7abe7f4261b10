import { OperatorError } from '../errors.ts';
import { limits } from '../limits.ts';

const longestSeconds = limits.keyLifeDaysMax * 86_400;
const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** `90d`, `12h`, `30m` or `45s`, up to ten years, as microseconds. */
export function parseDuration(flag: string, text: string): number {
  const match = /^([0-9]{1,6})([smhd])$/.exec(text);
  const seconds = Number(match?.[1]) * (unitSeconds[match?.[2] ?? ''] ?? NaN);
  if (!(seconds <= longestSeconds)) {
    throw new OperatorError(
      `${flag} must be a number followed by s, m, h or d, such as 90d or 12h, and at most ${limits.keyLifeDaysMax}d.`,
    );
  }
  return seconds * 1_000_000;
}
