import { TraceTallyError, mayPass } from '../../../client/src/reading.ts';
import { useEffect, useMemo } from 'preact/hooks';
import { Store, useStore } from '../parts/store.ts';

export type Load<T> =
  | { kind: 'loading' }
  | { kind: 'ready'; value: T }
  | { kind: 'failed'; error: unknown };

const retryMs = 5_000;

/** Loads a value, and reloads it on request. The old value stays until the new one has arrived. One request at a time. */
class Loader<T> {
  readonly state: Store<Load<T>>;
  readonly #load: (signal: AbortSignal) => Promise<T>;
  readonly #stopped = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isRunning = false;
  #isWantedAgain = false;
  #version: unknown = this;

  constructor(load: (signal: AbortSignal) => Promise<T>, initial: T | null, version: unknown) {
    this.#load = load;
    this.state = new Store<Load<T>>(
      initial === null ? { kind: 'loading' } : { kind: 'ready', value: initial },
    );
    if (initial !== null) this.#version = version;
  }

  /** Loads, unless this version is already loaded or loading. */
  want(version: unknown): void {
    if (Object.is(version, this.#version)) return;
    this.#version = version;
    this.refresh();
  }

  refresh(): void {
    if (this.#isRunning) this.#isWantedAgain = true;
    else void this.#run();
  }

  /** The user pressed a button, so show that the page is loading. */
  retry(): void {
    if (this.state.value.kind === 'failed') this.state.set({ kind: 'loading' });
    this.refresh();
  }

  stop(): void {
    this.#stopped.abort();
    clearTimeout(this.#timer);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    this.#isRunning = true;
    clearTimeout(this.#timer);
    try {
      const value = await this.#load(signal);
      if (!signal.aborted) this.state.set({ kind: 'ready', value });
    } catch (error) {
      if (!signal.aborted) this.#onFailure(error);
    } finally {
      this.#isRunning = false;
      if (this.#isWantedAgain && !signal.aborted) {
        this.#isWantedAgain = false;
        void this.#run();
      }
    }
  }

  #onFailure(error: unknown): void {
    // Old data is better than an error; the connection notice says that it is old.
    if (this.state.value.kind !== 'ready') this.state.set({ kind: 'failed', error });
    if (error instanceof TraceTallyError && mayPass(error)) {
      this.#timer = setTimeout(() => {
        if (document.hidden) this.#onFailure(error);
        else this.refresh();
      }, retryMs);
    }
  }
}

export interface Loading<T> {
  state: Load<T>;
  refresh(): void;
  retry(): void;
}

interface LoadRequest<T> {
  /** When it changes, the old value is discarded. */
  key: string;
  /** When it changes, the value is reloaded. Null while it is not known: loading then would mean loading twice. */
  version?: unknown;
  /** A value of this version that is already known. */
  initial?: T | null;
  load: (signal: AbortSignal) => Promise<T>;
}

export function useLoad<T>({ key, version, initial = null, load }: LoadRequest<T>): Loading<T> {
  const loader = useMemo(() => new Loader(load, initial, version), [key]);
  useEffect(() => () => loader.stop(), [loader]);
  useEffect(() => {
    if (version !== null) loader.want(version);
  }, [loader, version]);
  return {
    state: useStore(loader.state),
    refresh: () => loader.refresh(),
    retry: () => loader.retry(),
  };
}
