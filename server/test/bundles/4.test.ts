import { bundledFiles, bundleOf, runBundle } from '../support/bundle.ts';

await runBundle(bundleOf(bundledFiles(), 4, 4));
