import { Store } from '../parts/store.ts';
import { parseRoute } from './route.ts';
import type { Route } from './route.ts';

export interface Place {
  fragment: string;
  route: Route;
  /** Reached with the browser's Back or Forward button, so the view should look as it was left. */
  isReturn: boolean;
}

/** Follows the fragment. Stores the scroll position of each place, since browsers do not restore it correctly. */
class Navigation {
  readonly place = new Store<Place>(placeOf(false));
  readonly #scrolledTo = new Map<string, number>();
  #isNew = false;

  constructor() {
    history.scrollRestoration = 'manual';
    addEventListener('scroll', () => this.#remember(), { passive: true });
    addEventListener('click', (event) => this.#onClick(event), { capture: true });
    addEventListener('hashchange', () => this.#onChange());
  }

  go(href: string): void {
    this.#isNew = true;
    location.hash = href;
  }

  /** The scroll position to restore when going back. */
  get scrollTarget(): number {
    const { fragment, isReturn } = this.place.value;
    return isReturn ? (this.#scrolledTo.get(fragment) ?? 0) : 0;
  }

  /** Changes the address without adding an entry to the history. */
  replace(href: string): void {
    history.replaceState(null, '', href);
    this.place.set(placeOf(false));
  }

  #remember(): void {
    // Between the change of the address and the new content, the position belongs to neither.
    const { fragment } = this.place.value;
    if (fragment === location.hash) this.#scrolledTo.set(fragment, scrollY);
  }

  #onClick(event: MouseEvent): void {
    const opensElsewhere = event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
    if (event.button !== 0 || opensElsewhere || !(event.target instanceof Element)) return;
    const href = event.target.closest('a[href^="#/"]')?.getAttribute('href') ?? null;
    if (href === null) return;
    // Going to the current address changes only the position.
    if (href === (location.hash || '#/')) scrollTo({ top: 0 });
    else this.#isNew = true;
  }

  #onChange(): void {
    this.place.set(placeOf(!this.#isNew));
    this.#isNew = false;
  }
}

function placeOf(isReturn: boolean): Place {
  const fragment = location.hash;
  return { fragment, route: parseRoute(fragment), isReturn };
}

export const navigation = new Navigation();
