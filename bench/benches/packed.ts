import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installInEmptyFolder, pack } from '../../server/scripts/pack.ts';
import type { Bench } from '../lab/bench.ts';
import { startPacked, startService } from '../lab/processes.ts';
import type { Running } from '../lab/processes.ts';
import { inTurns } from '../lab/rounds.ts';
import { median, medianRatio } from '../lab/statistics.ts';

const server = fileURLToPath(new URL('../../server/', import.meta.url));

export const packed: Bench = {
  name: 'packed',
  asks: 'time until ready of the installed npm package, against the checkout; its size',
  async run(lab) {
    const folder = mkdtempSync(join(tmpdir(), 'tracetally-bench-packed-'));
    try {
      const { path } = await pack(server, folder);
      const { packages, megabytes } = await installInEmptyFolder(folder, [path]);
      const { url } = await lab.emptyDatabase('packed');
      const measure = (start: () => Promise<Running>) => async () => {
        const startMs = performance.now();
        const service = await start();
        const ready = await fetch(`${service.url}/readyz`);
        if (!ready.ok) throw new Error(`/readyz returned ${ready.status}`);
        const tookMs = performance.now() - startMs;
        await service.stop();
        return tookMs;
      };
      const contestants = {
        packed: measure(() => startPacked(url, folder)),
        checkout: measure(() => startService(url)),
      };
      // The first start of each fills its compile cache.
      await inTurns(1, contestants);
      const times = await inTurns(4 * lab.plan.rounds + 1, contestants, { bothOrders: true });
      return [
        {
          bench: 'packed',
          what: 'time until ready of the npm package',
          value: medianRatio(times.packed, times.checkout),
          unit: '× checkout',
          goal: { atMost: 1 },
          detail: `${median(times.packed).toFixed(0)} ms against ${median(times.checkout).toFixed(0)} ms`,
        },
        {
          bench: 'packed',
          what: 'size of the installed npm package',
          value: megabytes,
          unit: 'MB',
          goal: null,
          detail: `${packages} packages, with its own Node.js`,
        },
      ];
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
};
