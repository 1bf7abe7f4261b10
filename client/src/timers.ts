/** A timer that can be cancelled. */
export interface Alarm {
  cancel(): void;
}

export type StartTimer = (ms: number, run: () => void) => Alarm;

interface Entry {
  timer: ReturnType<typeof setTimeout>;
}

const timerMsMax = 2 ** 31 - 1;

/** A timer that keeps the process alive. */
export function startTimer(ms: number, run: () => void): Alarm {
  const timer = setTimeout(run, Math.min(ms, timerMsMax));
  return { cancel: () => clearTimeout(timer) };
}

/** Timers that keep the process alive only while their result is awaited. */
export class Timers {
  readonly #entries = new Set<Entry>();
  #holders = 0;

  start(ms: number, run: () => void): Alarm {
    const timer = setTimeout(
      () => {
        this.#entries.delete(entry);
        run();
      },
      Math.min(ms, timerMsMax),
    );
    const entry = { timer };
    this.#entries.add(entry);
    if (this.#holders === 0) letProcessEnd(timer, true);
    return {
      cancel: () => {
        clearTimeout(timer);
        this.#entries.delete(entry);
      },
    };
  }

  /** From now on the timers keep the process alive, until `release` was called as often as `hold`. */
  hold(): void {
    if (this.#holders++ === 0) this.#letAllEnd(false);
  }

  release(): void {
    if (--this.#holders === 0) this.#letAllEnd(true);
  }

  #letAllEnd(mayEnd: boolean): void {
    for (const { timer } of this.#entries) letProcessEnd(timer, mayEnd);
  }
}

/** Node and Bun have methods on the timer, Deno has functions; browsers have neither and need none. */
function letProcessEnd(timer: unknown, mayEnd: boolean): void {
  const onTimer = timer as { unref?: () => void; ref?: () => void };
  const { Deno } = globalThis as {
    Deno?: { unrefTimer?: (id: unknown) => void; refTimer?: (id: unknown) => void };
  };
  if (mayEnd) {
    if (typeof onTimer.unref === 'function') onTimer.unref();
    else Deno?.unrefTimer?.(timer);
  } else if (typeof onTimer.ref === 'function') onTimer.ref();
  else Deno?.refTimer?.(timer);
}
