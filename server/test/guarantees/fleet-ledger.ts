import { readFileSync } from 'node:fs';

/** A request of the ledger, and what its client was told about it. */
export interface FleetEntry {
  team: number;
  nonce: string;
  /** One with a key may have been acknowledged by more than one server. */
  acknowledged: { isReplay: boolean; ids: string }[];
  /** The code of the last refusal. */
  refused: string | null;
}

/**
 * Lines of the ledger: `? TEAM NONCE` before a request is sent for the first time, `x TEAM NONCE CODE` when a refusal has been read to
 * its end, and `! TEAM NONCE REPLAYED IDS` when a 201 has.
 */
export function readFleetLedger(path: string): FleetEntry[] {
  const entries = new Map<string, FleetEntry>();
  const lines = readFileSync(path, 'utf8').split('\n');
  for (const line of lines.filter((text) => text !== '')) {
    const [sign, team, nonce = '', word = '', ids = ''] = line.split(' ');
    const entry = entries.get(nonce) ?? {
      team: Number(team),
      nonce,
      acknowledged: [],
      refused: null,
    };
    if (sign === 'x') entry.refused = word;
    if (sign === '!') entry.acknowledged.push({ isReplay: word === 'true', ids });
    entries.set(nonce, entry);
  }
  return [...entries.values()];
}
