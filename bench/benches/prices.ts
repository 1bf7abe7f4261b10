import type { Bench } from '../lab/bench.ts';
import { smallPayloads, traceBodies } from '../lab/bodies.ts';
import { compareFlags } from '../lab/compare-flags.ts';

export const prices: Bench = {
  name: 'prices',
  asks: 'POST /traces without a cost: CPU time with computed costs compared with none',
  async run(lab) {
    const bodies = traceBodies(1_000, smallPayloads).map((body) => {
      const { cost_usd: _, ...rest } = JSON.parse(body) as Record<string, unknown>;
      return JSON.stringify(rest);
    });
    const { ratio, detail } = await compareFlags(lab, 'prices', bodies, ['--price-missing-costs']);
    return [
      {
        bench: 'prices',
        what: 'CPU time per POST with computed costs',
        value: ratio,
        unit: '× without',
        goal: { atMost: 1.03 },
        detail,
      },
    ];
  },
};
