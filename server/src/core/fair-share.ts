/** A caller that holds part of a shared resource. */
export interface Holder {
  teamId: string;
  /** Null if the share belongs to the whole team. */
  keyId: string | null;
}

/**
 * Divides one bounded resource between teams. A team may hold at most as much as is still free: one busy team gets half, two get a
 * third each. A team that holds nothing always finds room if single amounts are small compared with the total. One API key gets at
 * most a third of the total, so that a leaked key cannot use up its team's share.
 */
export class FairShare {
  readonly #total: number;
  readonly #teams = new Map<string, TeamPart>();
  #used = 0;

  constructor(total: number) {
    this.#total = total;
  }

  get used(): number {
    return this.#used;
  }

  /** The amount that this team holds. */
  heldBy(teamId: string): number {
    return this.#teams.get(teamId)?.held ?? 0;
  }

  /** Takes the amount if it is within the holder's share. */
  tryTake(holder: Holder, amount: number): boolean {
    if (!this.hasRoom(holder, amount)) return false;
    this.take(holder, amount);
    return true;
  }

  /** Whether the amount is within the holder's share now. */
  hasRoom({ teamId, keyId }: Holder, amount = 1): boolean {
    const free = this.#total - this.#used;
    const team = this.#teams.get(teamId);
    if (!team) return amount <= free;
    if (team.held + amount > free) return false;
    return keyId === null || (team.byKey?.get(keyId) ?? 0) + amount <= this.#total - 2 * team.held;
  }

  /** Takes the amount unconditionally, for memory that is already in use and must be counted. */
  take({ teamId, keyId }: Holder, amount: number): void {
    const team = this.#teams.getOrInsertComputed(teamId, newPart);
    this.#used += amount;
    team.held += amount;
    if (keyId === null) return;
    team.byKey ??= new Map();
    team.byKey.set(keyId, (team.byKey.get(keyId) ?? 0) + amount);
  }

  give({ teamId, keyId }: Holder, amount: number): void {
    const team = this.#teams.get(teamId);
    if (!team) return;
    this.#used -= amount;
    team.held -= amount;
    if (team.held <= 0) this.#teams.delete(teamId);
    if (keyId === null) return;
    const ofKey = (team.byKey?.get(keyId) ?? 0) - amount;
    if (ofKey > 0) team.byKey?.set(keyId, ofKey);
    else team.byKey?.delete(keyId);
  }
}

interface TeamPart {
  held: number;
  /** Null as long as all of it belongs to the whole team. */
  byKey: Map<string, number> | null;
}

const newPart = (): TeamPart => ({ held: 0, byKey: null });
