import { run, inTransaction } from './connection.ts';
import type { Pools } from './connection.ts';
import { ofSmallTables } from './statements.ts';

/** Records when keys were used, with one statement for all uses that gathered while the previous one ran. */
export interface KeyUses {
  note(keyId: string, atUs: number): void;
  close(): Promise<void>;
}

export function openKeyUses({ writing, begin }: Pools): KeyUses {
  let waiting = new Map<string, number>();
  let writingNow: Promise<void> | null = null;

  async function write(): Promise<void> {
    while (waiting.size > 0) {
      // Sorted, so that two servers can never deadlock.
      const uses = [...waiting].sort(([a], [b]) => (a < b ? -1 : 1));
      waiting = new Map();
      // Best effort; not awaited. The next use of the key records a newer time.
      await inTransaction(writing, begin, (client) =>
        run(client, ofSmallTables.noteKeyUses, [
          uses.map(([keyId]) => keyId),
          uses.map(([, atUs]) => atUs),
        ]),
      ).catch(() => {});
    }
    writingNow = null;
  }

  return {
    note(keyId, atUs) {
      waiting.set(keyId, Math.max(atUs, waiting.get(keyId) ?? 0));
      writingNow ??= write();
    },
    async close() {
      await writingNow;
    },
  };
}
