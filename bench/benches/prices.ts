import type { Bench } from '../lab/bench.ts';
import { smallPayloads, traceBodies } from '../lab/bodies.ts';
import { compareServices, cpuDetail } from '../lab/compare-services.ts';

export const prices: Bench = {
  name: 'prices',
  asks: 'POST /traces without a cost: CPU time with computed costs compared with none',
  async run(lab) {
    const bodies = traceBodies(1_000, smallPayloads).map((body) => {
      const { cost_usd: _, ...rest } = JSON.parse(body) as Record<string, unknown>;
      return JSON.stringify(rest);
    });
    const { cpuUs } = await compareServices(lab, 'prices', bodies, {
      ours: { flags: ['--price-missing-costs'] },
      control: {},
    });
    return [
      {
        bench: 'prices',
        what: 'CPU time per POST with computed costs',
        value: cpuUs.ratio,
        unit: '× without',
        goal: { atMost: 1.03 },
        detail: cpuDetail(cpuUs, 'without'),
      },
    ];
  },
};
