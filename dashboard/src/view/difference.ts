/** Whether more is better; calls are neither good nor bad. */
export type Better = 'more' | 'less' | 'neither';

/** How a figure differs from that of the period before. */
export interface Difference {
  direction: 'up' | 'down' | 'same';
  tone: 'good' | 'bad' | 'neutral';
  /** Never negative. */
  amount: number;
  /** Of the earlier value; null if that was 0. */
  share: number | null;
}

/** Null if one of the two is not known. */
export function differenceOf(
  now: number | null,
  before: number | null,
  better: Better,
): Difference | null {
  if (now === null || before === null) return null;
  // Differences of decimals are not exact in floating point; costs have at most 12 decimals.
  const change = Number((now - before).toFixed(12));
  if (change === 0) return { direction: 'same', tone: 'neutral', amount: 0, share: 0 };
  const isUp = change > 0;
  const isGood = isUp === (better === 'more');
  return {
    direction: isUp ? 'up' : 'down',
    tone: better === 'neither' ? 'neutral' : isGood ? 'good' : 'bad',
    amount: Math.abs(change),
    share: before === 0 ? null : Math.abs(change) / before,
  };
}

/** `8%`, `<1%`, `×12` for what has grown more than tenfold. */
export function shareWords(share: number): string {
  if (share >= 9.995) return `×${Math.round(share + 1).toLocaleString('en-US')}`;
  const value = share * 100;
  return value < 1 ? '<1%' : `${Math.round(value)}%`;
}
