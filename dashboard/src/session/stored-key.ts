/** The key lives as long as the tab, and only there. Pages under other paths of the same host keep their own. */
const name = `tracetally-key ${location.pathname}`;

export function readStoredKey(): string | null {
  try {
    return sessionStorage.getItem(name);
  } catch {
    // A browser may forbid storage; then a reload asks for the key again.
    return null;
  }
}

export function storeKey(key: string): void {
  try {
    sessionStorage.setItem(name, key);
  } catch {
    // As above.
  }
}

export function forgetKey(): void {
  try {
    sessionStorage.removeItem(name);
  } catch {
    // As above.
  }
}
