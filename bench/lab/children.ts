import { execFile } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { promisify } from 'node:util';

/** Every process that the bench has started and that still runs. */
const running = new Set<ChildProcess>();

/** None of them outlives the bench, however it ends: what they hold open would also keep it from ending. */
export function watchChild<C extends ChildProcess>(child: C): C {
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

export function endChildren(): void {
  for (const child of running) child.kill('SIGKILL');
}

const execute = promisify(execFile);

/** Runs a program to its end and answers what it printed. */
export async function runProgram(program: string, args: readonly string[]): Promise<string> {
  const result = execute(program, args);
  watchChild(result.child);
  return (await result).stdout;
}
