import { execFile } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { promisify } from 'node:util';

/** The processes that the bench has started and that still run. */
const running = new Set<ChildProcess>();

/** Stops all of them when the bench ends, for any reason. Their open pipes would also keep the bench alive. */
export function watchChild<C extends ChildProcess>(child: C): C {
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

export function endChildren(): void {
  for (const child of running) child.kill('SIGKILL');
}

const execute = promisify(execFile);

/** Runs a program to its end and returns what it printed. */
export async function runProgram(program: string, args: readonly string[]): Promise<string> {
  const result = execute(program, args);
  watchChild(result.child);
  return (await result).stdout;
}
