import assert from 'node:assert/strict';
import { runCli } from '../../../server/test/support/cli.ts';
import { temporaryFolder } from '../../../server/test/support/service.ts';

/** Enough to notice a page that reads them all; `DASHBOARD_DEMO=1000000` in the environment for a large store. */
const countUsual = 100_000;

export interface DemoData {
  folder: string;
  team: string;
  count: number;
  remove(): void;
}

/** A store with made-up traces of thirty days, filled by the service's own command. */
export async function makeDemoData(): Promise<DemoData> {
  const wished = process.env['DASHBOARD_DEMO'];
  const count = wished === undefined ? countUsual : Number(wished.replaceAll('_', ''));
  assert.ok(Number.isSafeInteger(count) && count > 0, 'DASHBOARD_DEMO is a number of traces');
  const { path, remove } = temporaryFolder();
  const database = `sqlite:${path}/tracetally.db`;
  const { code, stderr } = await runCli(['demo', '--count', `${count}`, '--database', database]);
  assert.equal(code, 0, stderr);
  return { folder: path, team: 'demo', count, remove };
}
