/**
 * Writes a small database of the present schema for the upgrade tests: `npm run fixture`. Run it once when a schema is released; the file never
 * changes again.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { demoTraces } from '../src/cli/demo-data.ts';
import { demoTimes } from '../src/cli/demo-times.ts';
import { draftTrace } from '../src/core/trace.ts';
import { onlyMeasures, overviewQuery } from '../src/core/analytics.ts';
import { overviewJson } from '../src/http/analytics-json.ts';
import { makeKey } from '../src/store/teams-and-keys.ts';
import { readMigrations } from '../src/store/sqlite/migrate.ts';
import { openSqliteStore } from '../src/store/sqlite/open-sqlite-store.ts';

const version = readMigrations().length;
const base = fileURLToPath(
  new URL(`../test/guarantees/fixtures/schema-${version}`, import.meta.url),
);
const count = 200;
const endUs = Date.UTC(2026, 10, 4, 12) * 1000;

rmSync(`${base}.db`, { force: true });
const store = await openSqliteStore({
  path: `${base}.db`,
  clock: { kind: 'system' },
  role: 'server',
});
const { team } = await store.ensureTeam('fixture', endUs);
const { key, record } = makeKey({
  name: 'fixture',
  scope: 'full',
  nowUs: endUs,
  expiresAtUs: null,
});
await store.createKey(team.id, record);
await store.append([
  {
    teamId: team.id,
    drafts: Array.from(demoTraces(count, version), (trace, i) =>
      draftTrace(i % 20 === 0 ? { ...trace, input: 'long '.repeat(800) } : trace),
    ),
    timesUs: [...demoTimes(count, endUs - 7 * 86_400_000_000, endUs)],
  },
]);
const { first } = await store.page(team.id, { page: 1, limit: 1, omit: new Set() });
const overview = await store.tallies(team.id, overviewQuery);
const expected = {
  team: team.id,
  key,
  total: count,
  newest: first[0],
  overview: JSON.parse(overviewJson(onlyMeasures(overview.first))) as unknown,
};
writeFileSync(`${base}.json`, `${JSON.stringify(expected, null, 2)}\n`);
await store.close();
rmSync(`${base}.db.lock`, { force: true });
