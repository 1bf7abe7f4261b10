import { accessFromRow } from '../key-rows.ts';
import type { KeyAccess } from '../teams-and-keys.ts';
import { ask } from './connection.ts';
import type { Pools } from './connection.ts';
import { ofSmallTables } from './statements.ts';

/** Looks up keys by hash, with one query for all lookups of the same event-loop turn. */
export function openKeyFinder({
  reading,
}: Pick<Pools, 'reading'>): (hash: string) => Promise<KeyAccess | null> {
  let asked = new Map<string, Promise<KeyAccess | null>>();
  let answers: Promise<ReadonlyMap<string, KeyAccess>> | null = null;

  async function lookUp(): Promise<ReadonlyMap<string, KeyAccess>> {
    await new Promise((resolve) => setImmediate(resolve));
    const hashes = [...asked.keys()];
    asked = new Map();
    answers = null;
    const rows = await ask(reading, ofSmallTables.findKeysByHash, [hashes]);
    return new Map(rows.map((row) => [row['hash'] as string, accessFromRow(row)]));
  }

  return (hash) => {
    answers ??= lookUp();
    const known = asked.get(hash);
    if (known) return known;
    const answer = answers.then((found) => found.get(hash) ?? null);
    asked.set(hash, answer);
    return answer;
  };
}
