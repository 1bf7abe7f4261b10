import type { Bench } from '../lab/bench.ts';
import { compareReads } from '../lab/compare-reads.ts';
import { startControl } from '../lab/processes.ts';

export const reads: Bench = {
  name: 'reads',
  asks: 'every GET endpoint at three database sizes; analytics compared with a bare server that runs "select 1"',
  async run(lab) {
    const { small, middle, large } = lab.plan;
    const smallest = await lab.dataset(small);
    const datasets = [
      { dataset: smallest, size: '10 k' },
      { dataset: await lab.dataset(middle), size: '1 M' },
      { dataset: await lab.dataset(large), size: '10 M' },
    ];
    const control = await startControl('select-one-server.ts', [smallest.path]);
    const findings = await compareReads(lab, {
      bench: 'reads',
      datasets,
      control,
      controlName: 'S',
      controlGoal: { atLeast: 0.6 },
    });
    await control.stop();
    return findings;
  },
};
