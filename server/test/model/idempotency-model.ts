/**
 * What a team's requests with a key should meet, by the plainest means: a list of what came before. `T` is whatever the test wants to
 * know of the first one.
 */
export class IdempotencyModel<T> {
  readonly #requests = new Map<string, { body: string; first: T; untilUs: number }>();
  #latestUs = -Infinity;

  /** A request that is not stored may have removed what had expired by then, or not, before the clock jumped back: then the store decides. */
  meet(key: string, body: string, nowUs: number, isStored: boolean): Meeting<T> {
    const known = this.#requests.get(key);
    const mayBeGone = known !== undefined && known.untilUs <= this.#latestUs;
    this.pass(nowUs);
    if (!known || known.untilUs <= nowUs || (mayBeGone && isStored)) return { kind: 'new' };
    return known.body === body ? { kind: 'again', first: known.first } : { kind: 'reused' };
  }

  /** A request without a key may remove what has expired too. */
  pass(nowUs: number): void {
    this.#latestUs = Math.max(this.#latestUs, nowUs);
  }

  note(key: string, body: string, first: T, nowUs: number): void {
    // What has expired is gone for good, though the clock may jump back.
    for (const [name, { untilUs }] of this.#requests) {
      if (untilUs <= nowUs) this.#requests.delete(name);
    }
    this.#requests.set(key, { body, first, untilUs: nowUs + dayUs });
  }
}

export type Meeting<T> = { kind: 'new' } | { kind: 'again'; first: T } | { kind: 'reused' };

const dayUs = 86_400_000_000;
