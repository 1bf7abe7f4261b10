import { Store, useStore } from './store.ts';

const tickMs = 5_000;

/** One clock for the whole page, so that all ages change together. It stops while the page is hidden. */
const now = new Store(Date.now());

setInterval(() => {
  if (!document.hidden) now.set(Date.now());
}, tickMs);
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) now.set(Date.now());
});

/** The time, a few seconds old at most. */
export function useNow(): number {
  return useStore(now);
}

/** Updates the clock for data that just arrived, so that its age starts at zero. */
export function refreshNow(): void {
  now.set(Date.now());
}
