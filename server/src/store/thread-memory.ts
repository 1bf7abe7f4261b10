import type { ResourceLimits } from 'node:worker_threads';

/** The space for new objects of a thread. With the default of 96 MB, wide questions left the process 270 MB larger for good. */
export const threadMemory: ResourceLimits = { maxYoungGenerationSizeMb: 24 };
