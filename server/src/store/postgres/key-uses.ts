import { noteKeyUses } from '../key-table.ts';
import type { Sql } from '../sql.ts';

/** Records when keys were used, with one statement for all uses that gathered while the previous one ran. */
export interface KeyUses {
  note(keyId: string, atUs: number): void;
  close(): Promise<void>;
}

export function openKeyUses(sql: Sql): KeyUses {
  let waiting = new Map<string, number>();
  let writingNow: Promise<void> | null = null;

  async function write(): Promise<void> {
    while (waiting.size > 0) {
      // Sorted, so that two servers can never deadlock.
      const uses = [...waiting]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([keyId, atUs]) => ({ keyId, atUs }));
      waiting = new Map();
      // Best effort; not awaited. The next use of the key records a newer time.
      await sql.transaction(() => noteKeyUses(uses)).catch(() => {});
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
