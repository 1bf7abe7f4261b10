import type { Bench } from '../lab/bench.ts';
import { comparePages } from '../lab/compare-pages.ts';

export const pages: Bench = {
  name: 'pages',
  asks: 'the first, middle and last page of 10 M traces',
  async run(lab) {
    return comparePages(lab, 'pages', await lab.dataset(lab.plan.large));
  },
};
