import { useEffect, useState } from 'preact/hooks';

/** A value that changes, with listeners. */
export class Store<T> {
  #value: T;
  readonly #listeners = new Set<() => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listener of this.#listeners) listener();
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }
}

/** The store's value; the component renders again when it changes. */
export function useStore<T>(store: Store<T>): T {
  const [, renderAgain] = useState({});
  const rendered = store.value;
  useEffect(() => {
    // It may have changed between the render and this effect.
    if (!Object.is(rendered, store.value)) renderAgain({});
    return store.subscribe(() => renderAgain({}));
  }, [store]);
  return rendered;
}
