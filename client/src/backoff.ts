import type { TraceTallyError } from './errors.ts';
import { idempotencyLifeMs } from './settings.ts';
import type { Settings } from './settings.ts';

/**
 * Statuses after which the same request may succeed. All are safe to try again, since reads change nothing and writes carry an
 * idempotency key.
 */
const passingStatuses = new Set([408, 425, 429, 500, 502, 503, 504, 507]);
const passingCodes = new Set(['network_error', 'no_reply', 'bad_reply']);

export function mayPass(error: TraceTallyError): boolean {
  return (
    passingCodes.has(error.code) || (error.status !== null && passingStatuses.has(error.status))
  );
}

/** The value of a `Retry-After` header, seconds or a date, as milliseconds from now; null where there is none that can be read. */
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
 * Full jitter: anywhere between nothing and a bound that doubles, so that clients that failed together do not come back together.
 * What the server asked for comes first, and the jitter on top.
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
  /** Retries that were made before. */
  retries: number;
  /** Since the first try. */
  ageMs: number;
}

/** How long to wait before another try, or null to give up. */
export type RetryRule = (failure: Failure) => number | null;

/** For calls that somebody waits for: a few tries, and never a pause longer than the longest of our own. */
export function whileWaitedFor(settings: BackoffSettings): RetryRule {
  return ({ error, retries }) => {
    if (!mayPass(error) || retries >= settings.maxRetries) return null;
    if ((error.retryAfterMs ?? 0) > settings.retryDelayMaxMs) return null;
    return pauseMs(retries, error.retryAfterMs, settings);
  };
}

/**
 * For batches in the background: until they are too old. A 500 is a mistake of the server that waiting does not mend, so that it
 * gets a few tries only and does not hold up what waits behind it.
 */
export function untilTooOld(settings: BackoffSettings): RetryRule {
  return ({ error, retries, ageMs }) => {
    const leftMs = settings.maxRetryAgeMs - ageMs;
    if (!mayPass(error) || leftMs <= 0) return null;
    if (error.status === 500 && retries >= settings.maxRetries) return null;
    // Where the server asks for longer than there is, the last try comes at the end of the time.
    return Math.min(leftMs, pauseMs(retries, error.retryAfterMs, settings));
  };
}

/** Tries until it succeeds or the rule says no; throws the last failure. */
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
      // A machine that slept for a day must not send a key that the server has forgotten.
      if (Date.now() - startedMs > idempotencyLifeMs) throw error;
    }
  }
}
