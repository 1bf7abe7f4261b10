import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Rows a second of the control D. */
export async function storeAlone(path: string, seconds: number): Promise<number> {
  const file = fileURLToPath(new URL('store-control.ts', import.meta.url));
  const { stdout } = await run(process.execPath, [file, path, String(seconds)]);
  return (JSON.parse(stdout) as { perSecond: number }).perSecond;
}
