const barChars = 24;
const redrawMs = 100;

/** A progress bar on a terminal, which ends with its scope. Nothing is shown if the output is a file or a pipe. */
export function openProgress(what: string) {
  const stream = process.stderr;
  let start: { ms: number; done: number } | null = null;
  let drawnMs = 0;
  function end(): void {
    if (drawnMs > 0) stream.write('\n');
    drawnMs = 0;
  }
  return {
    show(done: number, total: number): void {
      const nowMs = performance.now();
      // Work that was done earlier does not count for the speed.
      start ??= { ms: nowMs, done };
      if (!stream.isTTY || (nowMs - drawnMs < redrawMs && done < total)) return;
      drawnMs = nowMs;
      const share = total === 0 ? 1 : Math.min(1, done / total);
      const bar = '#'.repeat(Math.round(share * barChars)).padEnd(barChars, '.');
      const perSecond = Math.round(((done - start.done) * 1000) / Math.max(1, nowMs - start.ms));
      stream.write(`\r[${bar}] ${done} of ${total} ${what}, ${perSecond} per second\x1b[K`);
    },
    end,
    [Symbol.dispose]: end,
  };
}

/** Starts to measure; the result returns the seconds since then, with one decimal. */
export function openStopwatch(): () => number {
  const startMs = performance.now();
  return () => Number(((performance.now() - startMs) / 1000).toFixed(1));
}
