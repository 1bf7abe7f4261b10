import type { Overview } from '../../../client/src/reading.ts';
import { TraceTallyError } from '../../../client/src/reading.ts';
import { Store } from '../parts/store.ts';

export interface PulseState {
  /** The latest totals; null before the first reply. */
  overview: Overview | null;
  /** Why the last request failed; null if it succeeded. */
  failure: { error: unknown; lastAnswerMs: number | null } | null;
  isPaused: boolean;
}

const beatMs = 2_000;
const backoffMaxMs = 30_000;

/**
 * Requests the totals every two seconds. Everything else is requested only if they have changed. It pauses while the page is hidden or
 * paused, and backs off while the server does not reply.
 */
export class Pulse {
  readonly state: Store<PulseState>;
  readonly #read: (signal: AbortSignal) => Promise<Overview>;
  #stopped = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isBeating = false;
  #failures = 0;
  #lastAnswerMs: number | null = null;

  constructor(read: (signal: AbortSignal) => Promise<Overview>) {
    this.#read = read;
    this.state = new Store<PulseState>({ overview: null, failure: null, isPaused: false });
  }

  start(): void {
    this.#stopped = new AbortController();
    const { signal } = this.#stopped;
    const onWake = (): void => this.#wake();
    document.addEventListener('visibilitychange', onWake, { signal });
    addEventListener('online', onWake, { signal });
    addEventListener('pageshow', onWake, { signal });
    this.#wake();
  }

  stop(): void {
    this.#stopped.abort();
    clearTimeout(this.#timer);
  }

  pause(): void {
    clearTimeout(this.#timer);
    this.#change({ isPaused: true });
  }

  resume(): void {
    this.#change({ isPaused: false });
    this.#wake();
  }

  /** Requests the totals now, even if paused, since the user pressed a button. */
  beatNow(): void {
    this.#failures = 0;
    clearTimeout(this.#timer);
    void this.#beat();
  }

  get #rests(): boolean {
    return document.hidden || this.state.value.isPaused || this.#stopped.signal.aborted;
  }

  #wake(): void {
    clearTimeout(this.#timer);
    if (!this.#rests) void this.#beat();
  }

  async #beat(): Promise<void> {
    if (this.#isBeating) return;
    this.#isBeating = true;
    const { signal } = this.#stopped;
    let waitMs = beatMs;
    try {
      const overview = await this.#read(signal);
      if (signal.aborted) return;
      this.#failures = 0;
      this.#lastAnswerMs = Date.now();
      this.#change({ overview: this.#sameOr(overview), failure: null });
    } catch (error) {
      if (signal.aborted) return;
      this.#failures += 1;
      waitMs = backoffMs(this.#failures, error);
      this.#change({ failure: { error, lastAnswerMs: this.#lastAnswerMs } });
    } finally {
      this.#isBeating = false;
      if (!this.#rests) this.#timer = setTimeout(() => this.#wake(), waitMs);
    }
  }

  /** The same object if nothing changed, so that nothing is rendered again. */
  #sameOr(overview: Overview): Overview {
    const known = this.state.value.overview;
    return known !== null && isSame(known, overview) ? known : overview;
  }

  #change(part: Partial<PulseState>): void {
    const known = this.state.value;
    const next = { ...known, ...part };
    const isChanged =
      next.overview !== known.overview ||
      next.failure !== known.failure ||
      next.isPaused !== known.isPaused;
    if (isChanged) this.state.set(next);
  }
}

function isSame(a: Overview, b: Overview): boolean {
  return (
    a.total_calls === b.total_calls &&
    a.avg_latency_ms === b.avg_latency_ms &&
    a.total_cost_usd === b.total_cost_usd &&
    a.success_rate === b.success_rate &&
    a.error_count === b.error_count
  );
}

/** Doubles from two to thirty seconds, slightly randomized so that many pages do not retry together; or the delay that the server asked for. */
function backoffMs(failures: number, error: unknown): number {
  const asked = error instanceof TraceTallyError ? (error.retryAfterMs ?? 0) : 0;
  const doubled = Math.min(backoffMaxMs, beatMs * 2 ** Math.min(failures - 1, 10));
  return Math.max(asked, doubled * (0.8 + Math.random() * 0.4));
}
