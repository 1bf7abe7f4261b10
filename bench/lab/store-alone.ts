import { fileURLToPath } from 'node:url';
import { runProgram } from './children.ts';

/** Rows per second of the control D. */
export async function storeAlone(path: string, seconds: number): Promise<number> {
  const file = fileURLToPath(new URL('store-control.ts', import.meta.url));
  const result = await runProgram(process.execPath, [file, path, String(seconds)]);
  return (JSON.parse(result) as { perSecond: number }).perSecond;
}
