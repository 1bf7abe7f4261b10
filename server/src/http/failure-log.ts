import type { FastifyBaseLogger } from 'fastify';
import type { ErrorCode } from '../errors.ts';
import { limits } from '../limits.ts';

/** A failed request for the log. The route is the route's pattern, never the caller's URL. */
export interface LoggedFailure {
  code: ErrorCode;
  route: string | null;
  /** Set for internal errors, so that each reason counts as its own kind and none hides another. */
  reason?: string | undefined;
}

/**
 * Decides which failures are logged individually: the first few of each kind per interval, so that a flood of them cannot fill the
 * disk. The others are counted and logged in one summary at the end of the interval.
 */
export interface FailureLog {
  readonly logger: FastifyBaseLogger;
  /** Whether to log this failure individually. If not, it is counted here. */
  admit(failure: LoggedFailure): boolean;
  /** Logs the last summary. */
  close(): void;
}

type Bounds = Record<'failureLogIntervalMs' | 'failureLinesMax' | 'failureKindsMax', number>;

export function openFailureLog(
  logger: FastifyBaseLogger,
  { failureLogIntervalMs, failureLinesMax, failureKindsMax }: Bounds = limits,
  noteFailure: (code: ErrorCode) => void = () => {},
): FailureLog {
  const linesByKind = new Map<string, number>();
  const skipped = new Map<string, { code: ErrorCode; route: string | null; count: number }>();
  let interval: NodeJS.Timeout | null = null;

  function endInterval(): void {
    interval = null;
    linesByKind.clear();
    if (skipped.size === 0) return;
    const failures = [...skipped.values()].sort((a, b) => b.count - a.count);
    skipped.clear();
    logger.warn({ failures }, 'more requests failed than were logged individually');
  }

  /** The number of different reasons is unbounded, so past `failureKindsMax` only the code is used. */
  function kindOf({ code, reason }: LoggedFailure): string {
    const kind = `${code} ${reason ?? ''}`;
    return linesByKind.has(kind) || linesByKind.size < failureKindsMax ? kind : code;
  }

  return {
    logger,
    admit(failure) {
      noteFailure(failure.code);
      if (logger.level === 'debug') return true;
      interval ??= setTimeout(endInterval, failureLogIntervalMs).unref();
      const kind = kindOf(failure);
      const lines = linesByKind.get(kind) ?? 0;
      if (lines < failureLinesMax) {
        linesByKind.set(kind, lines + 1);
        return true;
      }
      const { code, route } = failure;
      const name = `${code} ${route}`;
      skipped.getOrInsert(name, { code, route, count: 0 }).count += 1;
      return false;
    },
    close() {
      if (interval !== null) clearTimeout(interval);
      endInterval();
    },
  };
}
