import type pg from 'pg';
import { OperatorError } from '../../errors.ts';
import { run } from './connection.ts';
import type { ServerTraits } from './connection.ts';
import { giveUpNames, isBehindPooler } from './statement-names.ts';

/** The server settings that the store's guarantees depend on. */
export interface ServerSettings {
  version: number;
  version_text: string;
  is_replica: boolean;
  read_only: string;
  fsync: string;
  synchronous_commit: string;
  encoding: string;
  float_digits: number;
  /** Null if the extension is not installed. */
  citus_version: string | null;
  backend_pid: number;
}

const oldestVersion = 14;
/** Older ones do not apply the settings of a transaction on every node. */
const oldestCitus = [11, 2] as const;

const readSettings = `
  select current_setting('server_version_num')::integer as version,
    current_setting('server_version') as version_text,
    pg_is_in_recovery() as is_replica,
    current_setting('default_transaction_read_only') as read_only,
    current_setting('fsync') as fsync,
    current_setting('synchronous_commit') as synchronous_commit,
    current_setting('server_encoding') as encoding,
    current_setting('extra_float_digits')::integer as float_digits,
    (select extversion from pg_extension where extname = 'citus') as citus_version,
    pg_backend_pid() as backend_pid`;

/** Rejects a server that could lose acknowledged data. */
export async function checkServer(client: pg.ClientBase, where: string): Promise<ServerTraits> {
  const { rows } = await run(client, readSettings);
  const settings = rows[0] as unknown as ServerSettings;
  const reason = unfitBecause(settings);
  if (reason !== null) throw new OperatorError(`${where} ${reason}`);
  if (isBehindPooler(client, settings.backend_pid)) giveUpNames(client);
  // With `off`, a power failure could lose an acknowledged trace. With replicas, an operator may have set a stronger value.
  const synchronousCommit =
    settings.synchronous_commit === 'off' ? 'on' : settings.synchronous_commit;
  return { synchronousCommit, hasCitus: settings.citus_version !== null };
}

/** Why this server cannot be used, or null. */
export function unfitBecause(settings: ServerSettings): string | null {
  if (settings.version < oldestVersion * 10_000) {
    return `is version ${settings.version_text}; TraceTally needs ${oldestVersion} or newer.`;
  }
  if (settings.is_replica) return 'is a read-only replica. Use the address of the primary.';
  if (settings.read_only === 'on') {
    return 'is read-only (default_transaction_read_only is on). Turn it off for this role or database.';
  }
  if (settings.fsync === 'off') {
    return 'runs with fsync = off, so a crash could lose acknowledged traces. Set fsync = on.';
  }
  if (settings.encoding !== 'UTF8') {
    return `has the encoding ${settings.encoding}; TraceTally needs a database with the encoding UTF8.`;
  }
  if (settings.float_digits < 1) {
    return 'rounds numbers (extra_float_digits is below 1). Set it to 1 for this role or database.';
  }
  if (settings.citus_version !== null && isOldCitus(settings.citus_version)) {
    return `has version ${settings.citus_version} of the "citus" extension; TraceTally needs ${oldestCitus.join('.')} or newer.`;
  }
  return null;
}

/** Versions are such as 13.0-1. */
function isOldCitus(version: string): boolean {
  const [major = 0, minor = 0] = version.split(/[.-]/).map(Number);
  const [oldestMajor, oldestMinor] = oldestCitus;
  return major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
}
