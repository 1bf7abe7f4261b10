import { spawnCli } from '../../test/support/cli.ts';

/** `tracetally serve` in a separate process, whose log is kept only in part. */
export interface SoakService {
  url: string;
  pid: number;
  /** How it ended; null while it runs. */
  ending(): string | null;
  ended: Promise<void>;
  /** The last lines of its log. */
  logTail(): string;
  /** Stops or goes on reading its log: an unread pipe fills up. */
  readLog(isRead: boolean): void;
  /** Ends it in order, or by force if that takes too long. */
  stop(withinMs: number): Promise<void>;
}

const logTailChars = 20_000;
const startMsMax = 120_000;

export async function startSoakService(
  database: string,
  wrapper: readonly string[],
): Promise<SoakService> {
  const flags = ['--port', '0', '--database', database, '--log-level', 'info'];
  const child = spawnCli(['serve', ...flags], {}, { wrapper });
  let tail = '';
  let ending: string | null = null;
  child.stderr.on('data', (data: Buffer) => {
    tail = `${tail}${data.toString()}`.slice(-logTailChars);
  });
  const ended = new Promise<void>((resolve) => {
    child.once('exit', (code, signal) => {
      ending = signal ?? `exit code ${code}`;
      resolve();
    });
  });
  const stop = async (withinMs: number): Promise<void> => {
    if (ending !== null) return;
    child.stderr.resume();
    child.kill('SIGTERM');
    const late = setTimeout(() => child.kill('SIGKILL'), withinMs);
    await ended;
    clearTimeout(late);
  };
  const url = await new Promise<string>((resolve, reject) => {
    let stdout = '';
    const late = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`the service did not start within ${startMsMax} ms`));
    }, startMsMax);
    child.stdout.on('data', (data: Buffer) => {
      stdout = `${stdout}${data.toString()}`.slice(-logTailChars);
      const found = /listening on (\S+)/.exec(stdout)?.[1];
      if (found === undefined) return;
      clearTimeout(late);
      resolve(found);
    });
    void ended.then(() => {
      clearTimeout(late);
      reject(new Error(`the service ended (${ending}): ${tail}`));
    });
  });
  if (child.pid === undefined) throw new Error('the service has no process id');
  return {
    url,
    pid: child.pid,
    ending: () => ending,
    ended,
    logTail: () => tail,
    readLog: (isRead) => void (isRead ? child.stderr.resume() : child.stderr.pause()),
    stop,
  };
}
