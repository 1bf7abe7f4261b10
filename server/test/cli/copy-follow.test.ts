import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { readDatabase } from '../../src/config.ts';
import { draftTrace } from '../../src/core/trace.ts';
import { eventually } from '../support/eventually.ts';
import { makeTeams, readLedger, startLoad } from '../guarantees/crash-lab.ts';
import type { LoadTeam } from '../guarantees/crash-lab.ts';
import { spawnCli, spawnServer } from '../support/cli.ts';
import type { CliResult } from '../support/cli.ts';
import { usePostgres } from '../support/postgres.ts';
import { temporaryFolder } from '../support/service.ts';
import { assertSameTraces, copyArgs, copyJson, withStoreAt } from './copy-lab.ts';
import type { Cleaner } from './helpers.ts';

const postgres = usePostgres();

/** A copy that follows, in a process of its own. */
function startFollowing(t: Cleaner, from: string, to: string) {
  const child = spawnCli(copyArgs(from, to, '--follow', '--json'));
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
  const ended = new Promise<CliResult>((resolve) => {
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
  t.after(() => void child.kill('SIGKILL'));
  return { ended, stderr: () => stderr, isRunning: () => child.exitCode === null };
}

async function tracesIn(database: string): Promise<number> {
  return withStoreAt(database, async (store) =>
    (await store.teams(0)).reduce((sum, { traces }) => sum + traces, 0),
  );
}

/** Which acknowledged requests are not in the store exactly once, under the id that their clients were told. */
async function faultsIn(
  database: string,
  folder: string,
  teams: readonly LoadTeam[],
): Promise<string[]> {
  const found = new Map<string, string[]>();
  await withStoreAt(database, async (store) => {
    for (const { id: teamId } of teams) {
      await store.audit(teamId, async ({ traces }) => {
        for await (const chunk of traces) {
          for (const { id, user_identifier } of chunk) {
            const nonce = user_identifier ?? '';
            found.set(nonce, [...(found.get(nonce) ?? []), id]);
          }
        }
      });
    }
  });
  return readLedger(folder)
    .filter(({ id, nonce }) => found.get(nonce)?.join() !== id)
    .map(({ id, nonce }) => `${nonce} was acknowledged as ${id}: ${found.get(nonce)?.join()}`);
}

describe('tracetally copy --follow', { concurrency: 2 }, () => {
  for (const from of ['sqlite', 'postgres'] as const) {
    test(`a copy follows a server on ${from} under load, and ends when the server was stopped, with everything`, async (t) => {
      const folder = temporaryFolder();
      t.after(() => folder.remove());
      const onFile = `sqlite:${join(folder.path, 'house.db')}`;
      const inPostgres = await postgres.createDatabase();
      const [source, target] = from === 'sqlite' ? [onFile, inPostgres] : [inPostgres, onFile];
      const teams = await makeTeams(readDatabase({ database: source }, {}), 3);
      await withStoreAt(source, async (store) => {
        const drafts = Array.from({ length: 3000 }, (_, i) => draftTrace({ model: `m${i % 9}` }));
        for (const { id: teamId } of teams.slice(1)) await store.append([{ teamId, drafts }]);
      });
      const server = await spawnServer(['--database', source, '--log-level', 'silent']);
      t.after(() => server.end('SIGKILL').then(() => {}));
      const load = startLoad(server.url, folder.path, 6, 0, teams);
      await load.begun();

      const copy = startFollowing(t, source, target);
      await eventually('the copy says that it has caught up', 20_000, async () =>
        copy.stderr() === '' ? null : true,
      );
      assert.match(
        copy.stderr(),
        /^Caught up\. Stop the servers of the source \(.*server.*\) to finish/,
      );
      const caughtUp = await tracesIn(target);
      assert.ok(caughtUp > 6000, `${caughtUp} traces`);
      await eventually('what is written later is copied too', 10_000, async () =>
        (await tracesIn(target)) > caughtUp ? true : null,
      );
      const keys = await withStoreAt(target, (store) => store.keys(null));
      assert.deepEqual(keys, [], 'nobody can sign in at a copy that is not whole');
      assert.ok(copy.isRunning(), 'it has ended while the server still runs');

      // The clients go on until nobody answers.
      assert.equal(await server.end('SIGTERM'), 0);
      const answers = await load.end();
      const result = await copy.ended;
      const report = copyJson(result);
      assert.equal(result.stderr.split('Caught up').length, 2, 'it says so once');
      assert.deepEqual(await faultsIn(target, folder.path, teams), []);
      assert.equal(report.traces, await assertSameTraces(source, target));
      assert.equal(report.copied, report.traces, 'each was copied once');
      assert.equal(report.keys, teams.length);
      const acknowledged = readLedger(folder.path).length;
      assert.ok(report.traces >= 6000 + acknowledged);
      t.diagnostic(`${acknowledged} acknowledged, ${JSON.stringify(answers)}`);
    });
  }
});
