import { closeSync, existsSync, openSync, readFileSync, writeSync } from 'node:fs';

/** A trace that the service acknowledged. The name is unique per trace that a client wanted to store, however often it was sent. */
export interface LedgerEntry {
  team: number;
  id: string;
  name: string;
}

export interface Ledger {
  note(entries: readonly LedgerEntry[]): void;
  close(): void;
}

export function openLedger(path: string): Ledger {
  const file = openSync(path, 'a');
  return {
    note(entries) {
      writeSync(file, entries.map(({ team, id, name }) => `${team} ${id} ${name}\n`).join(''));
    },
    close: () => closeSync(file),
  };
}

export function readLedger(path: string): LedgerEntry[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines
    .filter((line) => line !== '')
    .map((line) => {
      const [team = '', id = '', name = ''] = line.split(' ');
      return { team: Number(team), id, name };
    });
}
