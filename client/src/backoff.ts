import type { TraceTallyError } from './errors.ts';
import { idempotencyLifeMs } from './settings.ts';
import type { Settings } from './settings.ts';

/**
 * Statuses after which the same request may succeed. All requests are safe to retry: reads change nothing, and writes have an
 * idempotency key.
 */
const passingStatuses = new Set([408, 425, 429, 500, 502, 503, 504, 507]);
const passingCodes = new Set(['network_error', 'no_reply', 'bad_reply']);

export function mayPass(error: TraceTallyError): boolean {
  return (
    passingCodes.has(error.code) || (error.status !== null && passingStatuses.has(error.status))
  );
}

/** The value of a `Retry-After` header, seconds or a date, as milliseconds from now; null if it is missing or invalid. */
export function parseRetryAfter(value: string | null, nowMs: number): number | null {
  if (value === null) return null;
  const text = value.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  // A date has letters in it; Date.parse alone would also take "-5" for a year.
  const dateMs = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(dateMs) ? null : Math.max(0, dateMs - nowMs);
}

export type BackoffSettings = Pick<
  Settings,
  'retryDelayMs' | 'retryDelayMaxMs' | 'maxRetries' | 'maxRetryAgeMs'
>;

/**
 * Full jitter: a random delay below a bound that doubles, so that clients that failed together do not retry together. Jitter is added
 * to the delay that the server asked for.
 */
export function pauseMs(
  retries: number,
  retryAfterMs: number | null,
  settings: BackoffSettings,
  random: () => number = Math.random,
): number {
  const { retryDelayMs, retryDelayMaxMs } = settings;
  if (retryAfterMs !== null) return retryAfterMs + random() * retryDelayMs;
  return random() * Math.min(retryDelayMaxMs, retryDelayMs * 2 ** Math.min(retries, 30));
}

export interface Failure {
  error: TraceTallyError;
  /** Retries so far. */
  retries: number;
  /** Since the first attempt. */
  ageMs: number;
}

/** How long to wait before the next attempt, or null to give up. */
export type RetryRule = (failure: Failure) => number | null;

/** For calls that the caller awaits: a few retries, and no delay longer than `retryDelayMaxMs`. */
export function whileWaitedFor(settings: BackoffSettings): RetryRule {
  return ({ error, retries }) => {
    if (!mayPass(error) || retries >= settings.maxRetries) return null;
    if ((error.retryAfterMs ?? 0) > settings.retryDelayMaxMs) return null;
    return pauseMs(retries, error.retryAfterMs, settings);
  };
}

/**
 * For batches in the background: until they are too old. A 500 is a bug in the server that waiting does not fix, so it is
 * retried only a few times and does not block the batches behind it.
 */
export function untilTooOld(settings: BackoffSettings): RetryRule {
  return ({ error, retries, ageMs }) => {
    const leftMs = settings.maxRetryAgeMs - ageMs;
    if (!mayPass(error) || leftMs <= 0) return null;
    if (error.status === 500 && retries >= settings.maxRetries) return null;
    // If the server asks for a longer delay, the last attempt is made at the maximum age.
    return Math.min(leftMs, pauseMs(retries, error.retryAfterMs, settings));
  };
}

/** Retries until it succeeds or the rule returns null; throws the last failure. */
export async function withRetries<T>(
  attempt: () => Promise<T>,
  rule: RetryRule,
  sleep: (ms: number, failure: Failure) => Promise<void>,
): Promise<T> {
  const startedMs = Date.now();
  for (let retries = 0; ; retries++) {
    try {
      return await attempt();
    } catch (error) {
      const failure = { error: error as TraceTallyError, retries, ageMs: Date.now() - startedMs };
      const waitMs = rule(failure);
      if (waitMs === null) throw error;
      await sleep(waitMs, failure);
      // After a suspend of a day, the server no longer has the idempotency key.
      if (Date.now() - startedMs > idempotencyLifeMs) throw error;
    }
  }
}
