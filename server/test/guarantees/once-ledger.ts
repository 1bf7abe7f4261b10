import { existsSync, readFileSync } from 'node:fs';

/** A request of the ledger, and what its caller was told. */
export interface OnceEntry {
  team: number;
  nonce: string;
  acknowledged: { isReplay: boolean; ids: string[] } | null;
}

export function readOnceLedger(path: string): OnceEntry[] {
  const entries = new Map<string, OnceEntry>();
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : [];
  for (const line of lines.filter((text) => text !== '')) {
    const [sign, team = '', nonce = '', replayed, ids = ''] = line.split(' ');
    const entry = entries.get(nonce) ?? { team: Number(team), nonce, acknowledged: null };
    if (sign === '!') entry.acknowledged = { isReplay: replayed === 'true', ids: ids.split(',') };
    entries.set(nonce, entry);
  }
  return [...entries.values()];
}
