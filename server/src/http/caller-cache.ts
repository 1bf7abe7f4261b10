import { limits } from '../limits.ts';

/** How often callers were found in a cache or had to be looked up in the store. */
export interface CacheLookups {
  hit: number;
  miss: number;
}

/** Checks what may have changed since the caller was looked up. */
type Admit<C> = (caller: C, nowMs: number) => C;

interface Entry<C> {
  caller: C;
  /** From then on a request that uses the entry has it looked up again. */
  renewMs: number;
  untilMs: number;
}

/**
 * Callers by the raw header or session cookie that they sent. An entry ends soon after its lookup began, so that a revocation takes
 * effect within a second in every process. Those in use are looked up again before that, many at once and while their requests go on:
 * with a thousand busy keys, every other request would otherwise wait for a lookup. Ages are measured by a monotonic clock, so that a
 * jump of the wall clock cannot keep a key valid.
 */
export function openCallerCache<C>(
  lookUp: (credential: string) => Promise<C>,
  lookups: CacheLookups,
) {
  const entries = new Map<string, Entry<C>>();
  let toRenew: string[] = [];

  async function remember(credential: string): Promise<C> {
    const startMs = performance.now();
    const caller = await lookUp(credential);
    if (entries.size >= limits.keyCacheEntriesMax) entries.clear();
    entries.set(credential, {
      caller,
      renewMs: startMs + limits.keyRenewMs,
      untilMs: startMs + limits.keyCacheTtlMs,
    });
    return caller;
  }

  async function meet(credential: string, admit: Admit<C>): Promise<C> {
    const caller = await remember(credential);
    return admit(caller, performance.now());
  }

  function renewSoon(credential: string, entry: Entry<C>): void {
    entry.renewMs = Infinity;
    if (toRenew.length === 0) setTimeout(renew, limits.keyRenewPauseMs).unref();
    toRenew.push(credential);
  }

  function renew(): void {
    const credentials = toRenew;
    toRenew = [];
    for (const credential of credentials) {
      // The next request looks it up and is told why.
      remember(credential).catch(() => entries.delete(credential));
    }
  }

  return (credential: string, admit: Admit<C>): C | Promise<C> => {
    const nowMs = performance.now();
    const entry = entries.get(credential);
    if (entry === undefined || entry.untilMs <= nowMs) {
      lookups.miss += 1;
      return meet(credential, admit);
    }
    lookups.hit += 1;
    if (entry.renewMs <= nowMs) renewSoon(credential, entry);
    return admit(entry.caller, nowMs);
  };
}
