import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { main } from '../../src/cli/cli.ts';

const ownLauncher = fileURLToPath(new URL('../../bin/tracetally.js', import.meta.url));

export interface HowToRun {
  /** Another copy's launcher. */
  launcher?: string;
  /** A program that runs ours, such as `strace` with its arguments. */
  wrapper?: readonly string[];
}

export interface CliResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Starts the real command line in a separate process. No TRACETALLY_ variable leaks in, nor the compile cache of the tests. */
export function spawnCli(
  args: readonly string[],
  env: Record<string, string> = {},
  { launcher = ownLauncher, wrapper = [] }: HowToRun = {},
): ChildProcessWithoutNullStreams {
  const inherited = Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !name.startsWith('TRACETALLY_') && name !== 'NODE_COMPILE_CACHE',
    ),
  );
  const [program = '', ...rest] = [...wrapper, process.execPath, launcher, ...args];
  return spawn(program, rest, { env: { ...inherited, ...env } });
}

/** Runs a command to its end. */
export async function runCli(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<CliResult> {
  const child = spawnCli(args, env);
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, stdout, stderr };
}

/** Does what `runCli` does, but in this process, which takes a fraction of the time. */
export async function callCli(args: readonly string[]): Promise<CliResult> {
  let stdout = '';
  let stderr = '';
  const code = await main(args, {
    start: {
      node: process.execPath,
      script: ownLauncher,
      folder: process.cwd(),
      searchPath: [],
      npm: null,
    },
    print: (text) => (stdout += `${text}\n`),
    note: (text) => (stderr += `${text}\n`),
  }).catch((error: unknown) => {
    stderr += inspect(error);
    return 1;
  });
  return { code, stdout, stderr };
}

export interface ServerProcess {
  child: ChildProcessWithoutNullStreams;
  url: string;
  stdout(): string;
  stderr(): string;
  /** Sends the signal and waits for the end. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/** `tracetally serve` in a separate process; resolves when it listens, rejects with its output if it ends before. */
export async function spawnServer(
  flags: readonly string[],
  env: Record<string, string> = {},
  how: HowToRun = {},
): Promise<ServerProcess> {
  const child = spawnCli(['serve', '--port', '0', ...flags], env, how);
  let stdout = '';
  let stderr = '';
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on('data', (data: Buffer) => {
      stdout += data.toString();
      const found = /listening on (\S+)/.exec(stdout)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
    void ended.then((code) => reject(new Error(`the server ended with ${code}: ${stderr}`)));
  });
  return {
    child,
    url,
    stdout: () => stdout,
    stderr: () => stderr,
    end(signal) {
      child.kill(signal);
      return ended;
    },
  };
}
