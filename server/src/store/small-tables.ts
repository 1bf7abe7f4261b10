import { openKeys } from './key-table.ts';
import { openPrices } from './price-directory.ts';
import { openRepriceRuns } from './reprice-runs.ts';
import { openSignIn } from './sign-in.ts';
import type { Sql } from './sql.ts';
import { openTeams } from './team-table.ts';

/** The parts of a store that are the same on every database. */
export function openSmallTables(sql: Sql) {
  return {
    ...openTeams(sql),
    ...openKeys(sql),
    ...openSignIn(sql),
    ...openPrices(sql),
    ...openRepriceRuns(sql),
  };
}
