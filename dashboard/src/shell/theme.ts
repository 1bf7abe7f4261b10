import { Store } from '../parts/store.ts';

export type Theme = 'light' | 'dark';

const name = 'tracetally-theme';
const system = matchMedia('(prefers-color-scheme: dark)');

/** The system's theme, unless the user chose the other one. */
export const theme = new Store<Theme>(chosenTheme() ?? systemTheme());

export function startTheme(): void {
  const apply = (): void => {
    document.documentElement.dataset['theme'] = theme.value;
  };
  apply();
  theme.subscribe(apply);
  system.addEventListener('change', () => theme.set(chosenTheme() ?? systemTheme()));
}

export function toggleTheme(): void {
  const next = theme.value === 'dark' ? 'light' : 'dark';
  try {
    // Back at the system's theme, the page follows the system again.
    if (next === systemTheme()) localStorage.removeItem(name);
    else localStorage.setItem(name, next);
  } catch {
    // A browser may forbid storage; then the choice lasts until the page is closed.
  }
  theme.set(next);
}

function systemTheme(): Theme {
  return system.matches ? 'dark' : 'light';
}

function chosenTheme(): Theme | null {
  try {
    const chosen = localStorage.getItem(name);
    return chosen === 'light' || chosen === 'dark' ? chosen : null;
  } catch {
    return null;
  }
}
