/** A bar on a terminal, nothing elsewhere: logs and pipes are no place for it. */
export interface Progress {
  show(done: number, total: number): void;
  end(): void;
}

const barChars = 24;
const redrawMs = 100;

export function openProgress(what: string, stream: NodeJS.WriteStream = process.stderr): Progress {
  if (!stream.isTTY) return { show() {}, end() {} };
  const startMs = performance.now();
  let drawnMs = 0;
  return {
    show(done, total) {
      const nowMs = performance.now();
      if (nowMs - drawnMs < redrawMs && done < total) return;
      drawnMs = nowMs;
      const share = total === 0 ? 1 : done / total;
      const bar = '#'.repeat(Math.round(share * barChars)).padEnd(barChars, '.');
      const perSecond = Math.round((done * 1000) / Math.max(1, nowMs - startMs));
      stream.write(`\r[${bar}] ${done} of ${total} ${what}, ${perSecond} a second\x1b[K`);
    },
    end() {
      stream.write('\n');
    },
  };
}
