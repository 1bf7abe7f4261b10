import { fstatSync, write } from 'node:fs';
import { promisify } from 'node:util';
import { pino } from 'pino';
import type { Logger } from 'pino';
import { limits } from './limits.ts';

export interface LogStream {
  write(line: string): void;
  /** Resolves when every line is written or lost, at the latest after `logFlushMsMax`. */
  flush?(): Promise<void>;
}

/** Logs JSON lines with the level as a string. */
export function openLogger(level: string, stream: LogStream): Logger {
  const formatters = { level: (label: string) => ({ level: label }) };
  return pino({ level, formatters, base: null, timestamp: pino.stdTimeFunctions.isoTime }, stream);
}

/** Writes the whole text, or rejects. */
export type WriteText = (text: string) => Promise<void>;

/**
 * Logging never blocks or stops the service: a line that cannot be written is dropped and counted. Lines are passed to `writeText`, one
 * call at a time, and at most `logBufferBytesMax` of them wait. After a loss the next text begins with a line that says how many lines
 * are missing; the loss counts as reported once that text is written.
 */
export function openLogSink(writeText: WriteText): Required<LogStream> {
  let waiting: string[] = [];
  let waitingBytes = 0;
  let lost = 0;
  let writing: Promise<void> | null = null;

  async function writeWaiting(): Promise<void> {
    let works = true;
    while (waiting.length > 0 || (lost > 0 && works)) {
      const lines = waiting;
      const reported = lost;
      waiting = [];
      waitingBytes = 0;
      try {
        await writeText(lossReport(reported) + lines.join(''));
        lost -= reported;
        works = true;
      } catch {
        lost += lines.length;
        works = false;
      }
    }
    writing = null;
  }

  return {
    write(line) {
      const bytes = Buffer.byteLength(line);
      if (waitingBytes + bytes > limits.logBufferBytesMax) {
        lost += 1;
        return;
      }
      waiting.push(line);
      waitingBytes += bytes;
      writing ??= writeWaiting();
    },
    async flush() {
      if (writing === null) return;
      const { promise: deadline, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, limits.logFlushMsMax);
      await Promise.race([writing, deadline]);
      clearTimeout(timer);
    },
  };
}

/** Uses a separate logger, so that the line has the same format as all others. */
function lossReport(lost: number): string {
  if (lost === 0) return '';
  let report = '';
  const reporter = openLogger('error', { write: (line) => void (report = line) });
  reporter.error({ lost_lines: lost }, 'log lines were lost');
  return report;
}

const stderrFd = 2;

/**
 * Writes to standard error without blocking the event loop. Node's writes to files and terminals block, so those use the thread pool.
 * Pipes and sockets must not use it: a full pipe would block a thread of the pool, and the process could not exit.
 */
export function stderrText(): WriteText {
  const stat = fstatSync(stderrFd);
  if (!stat.isFIFO() && !stat.isSocket()) return fileText(stderrFd);
  // Errors are handled in the callback of each write.
  process.stderr.on('error', () => {});
  return (text) =>
    new Promise((resolve, reject) => {
      process.stderr.write(text, (error) => (error ? reject(error) : resolve()));
    });
}

const writeSome = promisify(write);

/** On a full disk only part of a text may be written. The next text then begins on a new line. */
function fileText(fd: number): WriteText {
  let isLineOpen = false;
  return async (text) => {
    let rest = Buffer.from(isLineOpen ? `\n${text}` : text);
    while (rest.length > 0) {
      const { bytesWritten } = await writeSome(fd, rest);
      isLineOpen = bytesWritten < rest.length;
      rest = rest.subarray(bytesWritten);
    }
  };
}
