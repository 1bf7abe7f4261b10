import type { FastifyBaseLogger } from 'fastify';
import { limits } from '../limits.ts';

/** What became of the spans, log records or payloads of a request. */
export interface SignalCounts {
  /** Stored as traces. */
  stored: number;
  /** Model calls that were stored before. */
  duplicate: number;
  /** Not model calls. */
  skipped: number;
  /** Model calls that could not be stored. */
  rejected: number;
}

/** Logs what became of signals: each request at debug level, and the sums once per interval. */
export interface SignalLog {
  add(requestId: string, counts: SignalCounts): void;
  /** Logs the last sums. */
  close(): void;
}

export function openSignalLog(
  logger: FastifyBaseLogger,
  noteSignals: (counts: SignalCounts) => void = () => {},
): SignalLog {
  let sums = noSignals();
  let interval: NodeJS.Timeout | null = null;

  function endInterval(): void {
    interval = null;
    if (Object.values(sums).some((count) => count > 0)) logger.info(sums, 'signals received');
    sums = noSignals();
  }

  return {
    add(requestId, counts) {
      const { stored, duplicate, skipped, rejected } = counts;
      noteSignals(counts);
      interval ??= setTimeout(endInterval, limits.signalLogIntervalMs).unref();
      sums.stored += stored;
      sums.duplicate += duplicate;
      sums.skipped += skipped;
      sums.rejected += rejected;
      if (logger.level !== 'debug') return;
      logger.debug({ request_id: requestId, stored, duplicate, skipped, rejected }, 'signals');
    },
    close() {
      if (interval !== null) clearTimeout(interval);
      endInterval();
    },
  };
}

export function noSignals(): SignalCounts {
  return { stored: 0, duplicate: 0, skipped: 0, rejected: 0 };
}
