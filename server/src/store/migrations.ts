import { readdirSync, readFileSync } from 'node:fs';

export interface Migration {
  version: number;
  sql: string;
}

/** The numbered .sql files of a folder, in order and without gaps. */
export function readMigrations(folder: URL): Migration[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name, i) => {
      const version = Number(name.slice(0, 4));
      if (version !== i + 1) throw new Error(`migration ${name} is out of order`);
      return { version, sql: readFileSync(new URL(name, folder), 'utf8') };
    });
}
