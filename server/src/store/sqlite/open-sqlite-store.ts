import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { Failure, OperatorError, messageOf } from '../../errors.ts';
import { openSmallTables } from '../small-tables.ts';
import { limits } from '../../limits.ts';
import type { Store, StoreOptions } from '../store.ts';
import { openAuditor } from './auditor.ts';
import { openWriting } from './connection.ts';
import { realDatabasePath, refuseSecondName } from './database-path.ts';
import { migrate, refuseForeignFile } from './migrate.ts';
import { watchOpenFiles } from './open-files.ts';
import { openReadingClient } from './reading-client.ts';
import { openRepricer } from './repricer.ts';
import { openRoller } from './roller.ts';
import { startRoller } from './roller-client.ts';
import type { RollerClient } from './roller-client.ts';
import { ensureRollupFile, openReadingBoth, prepareRollupFile } from './rollup-file.ts';
import { holdServerLock } from './server-lock.ts';
import { openSql } from './sql.ts';
import { translateFailures } from './sqlite-failures.ts';
import { openTallies } from './tallies.ts';
import { openTraceLookups } from './trace-lookups.ts';
import { openTracePages } from './trace-pages.ts';
import { openTransfer } from './transfer.ts';
import { startWriter } from './writer-client.ts';
import type { WriterClient } from './writer-client.ts';

export interface SqliteOptions extends StoreOptions {
  path: string;
}

export async function openSqliteStore(options: SqliteOptions): Promise<Store> {
  const { clock, role, mustExist = false, rollTailRows = limits.rollTailRows } = options;
  const closers: (() => void)[] = [];
  let holdsLock = false;
  const holdLock = (path: string): void => {
    if (!holdsLock) closers.push(holdServerLock(path));
    holdsLock = true;
  };
  const closeAll = (): void => {
    for (const close of closers.reverse()) close();
  };

  try {
    if (mustExist && !existsSync(options.path)) {
      throw new OperatorError(`The database ${options.path} does not exist.`);
    }
    // Before the path is resolved: the missing folder may be inside a linked one.
    mkdirSync(dirname(options.path), { recursive: true });
    const path = realDatabasePath(options.path);
    refuseSecondName(path);
    if (role === 'server') holdLock(path);
    refuseForeignFile(path);
    const db = openWriting(path);
    closers.push(() => db.close());
    migrate(db, path, role === 'server');
    if (role === 'server') prepareRollupFile(path);
    const reading = openReadingBoth(path);
    closers.push(() => reading.close());

    const readSomething = reading.prepare('select no from teams limit 1');
    readSomething.get();
    const files = watchOpenFiles(path);

    const readingClient = openReadingClient(path, files);
    closers.push(() => readingClient.close());

    const roller = openRoller(
      db,
      reading,
      path,
      () => ensureRollupFile(path, holdsLock),
      (release) => closers.push(release),
    );
    const methods = {
      ...translateFailures(openTracePages(reading, readingClient)),
      ...translateFailures(openTallies(reading, readingClient)),
      ...translateFailures(openTraceLookups(reading)),
      ...translateFailures(roller),
      ...translateFailures(openSmallTables(openSql(db, reading))),
      ...translateFailures(openRepricer(db, reading)),
      ...translateFailures(openAuditor(path)),
      ...translateFailures(openTransfer(db, () => holdLock(path))),
    };

    // Last, so that nothing can fail after its thread has started.
    let starting: Promise<WriterClient> | null = null;
    const writer = (): Promise<WriterClient> =>
      (starting ??= startWriter({ path, clock }, options));
    const running = role === 'server' ? await writer() : null;
    const isReporting = options.onRoll !== undefined;
    const rolls: RollerClient | null =
      role === 'server' && options.rolling !== 'manual'
        ? startRoller({ path, rowsMin: rollTailRows, isReporting }, options)
        : null;

    return {
      ...methods,
      noteKeyUse: (keyId, atUs) => running?.noteKeyUse({ keyId, atUs }),
      append: running
        ? (writes, moreFollow) => running.append(writes, moreFollow)
        : async (writes, moreFollow) => (await writer()).append(writes, moreFollow),
      async ping() {
        const cause = files.changedBy();
        if (cause !== null) throw new Failure('store_unavailable', { cause });
        readSomething.get();
        running?.ping();
      },
      async close() {
        try {
          if (starting) await (await starting).close();
          await rolls?.close();
        } finally {
          closeAll();
        }
      },
    };
  } catch (error) {
    closeAll();
    throw error instanceof OperatorError ? error : cannotOpen(options.path, error);
  }
}

function cannotOpen(path: string, error: unknown): OperatorError {
  return new OperatorError(`Cannot open the database ${path}: ${messageOf(error)}.`, {
    cause: error,
  });
}
