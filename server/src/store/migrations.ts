import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { OperatorError } from '../errors.ts';

export interface Migration {
  sql: string;
  /** Identifies the schema after this migration; stored in the database. */
  schema: number;
}

/**
 * The numbered .sql files of a folder, in order and without gaps. A schema is identified by a hash of its files: before the first release
 * they still change, so a count could not tell two schemas apart.
 */
export function readMigrations(folder: URL): Migration[] {
  const hash = createHash('sha256');
  return readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name, i) => {
      if (Number(name.slice(0, 4)) !== i + 1) throw new Error(`migration ${name} is out of order`);
      const sql = readFileSync(new URL(name, folder), 'utf8');
      hash.update(withoutComments(sql));
      // 31 bits, since both databases store it as a signed integer.
      return { sql, schema: hash.copy().digest().readUInt32BE() >>> 1 };
    });
}

function withoutComments(sql: string): string {
  return sql.replaceAll(/--.*$/gm, '').replaceAll(/\s+/g, ' ').trim();
}

/** The schema after all migrations. */
export function newestSchema(migrations: readonly Migration[]): number {
  const newest = migrations.at(-1);
  if (!newest) throw new Error('there are no migrations');
  return newest.schema;
}

/** The migrations that a store still needs; all of them if it has no schema yet. Throws if no migration leads from its schema to ours. */
export function pendingMigrations(
  migrations: readonly Migration[],
  schema: number | null,
  where: string,
): readonly Migration[] {
  if (schema === null) return migrations;
  const at = migrations.findIndex((migration) => migration.schema === schema);
  if (at >= 0) return migrations.slice(at + 1);
  throw new OperatorError(
    `${where} was written by another version of TraceTally (schema ${schema}; this version needs schema ${newestSchema(migrations)}). ` +
      'Use the version that wrote it, or choose an empty database with --database. Nothing was changed.',
  );
}
