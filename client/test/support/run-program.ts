import { spawn } from 'node:child_process';
import { once } from 'node:events';

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs a program to its end, or kills it after two and a half minutes. */
export async function runProgram(
  path: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<Ended> {
  const child = spawn(process.execPath, [path, ...args], { env, timeout: 150_000 });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stderr, stdout };
}
