import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { median } from './statistics.ts';

/** The median of a hundred times that the disk of this path takes to sync 64 KB. */
export function syncTimeMs(path: string): number {
  const file = openSync(path, 'w');
  const block = Buffer.alloc(64 * 1024);
  const times = Array.from({ length: 100 }, (_, i) => {
    writeSync(file, block, 0, block.length, i * block.length);
    const startMs = performance.now();
    fsyncSync(file);
    return performance.now() - startMs;
  });
  closeSync(file);
  rmSync(path);
  return Number(median(times).toFixed(2));
}
