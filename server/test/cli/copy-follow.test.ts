import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { readDatabase } from '../../src/config.ts';
import { draftTrace } from '../../src/core/trace.ts';
import { eventually } from '../support/eventually.ts';
import { makeTeams, readAcknowledged, startLoad } from '../guarantees/crash-lab.ts';
import type { LoadTeam } from '../guarantees/crash-lab.ts';
import { spawnCli, spawnServer } from '../support/cli.ts';
import type { CliResult } from '../support/cli.ts';
import { usePostgres } from '../support/postgres.ts';
import { temporaryFolder } from '../support/service.ts';
import { assertSameTraces, copyArgs, copyJson, withStoreAt } from './copy-lab.ts';
import type { Cleaner } from './helpers.ts';

const postgres = usePostgres();

/** A copy with --follow in a separate process. */
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

/** The acknowledged requests that are not stored exactly once under the id that their clients got. */
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
            const name = user_identifier ?? '';
            found.set(name, [...(found.get(name) ?? []), id]);
          }
        }
      });
    }
  });
  return readAcknowledged(folder)
    .filter(({ id, name }) => found.get(name)?.join() !== id)
    .map(({ id, name }) => `${name} was acknowledged as ${id}: ${found.get(name)?.join()}`);
}

describe('tracetally copy --follow', { concurrency: 2 }, () => {
  for (const from of ['sqlite', 'postgres'] as const) {
    test(`a copy follows a server on ${from} under load, and ends with everything when the server is stopped`, async (t) => {
      const folder = temporaryFolder();
      t.after(() => folder.remove());
      const onFile = `sqlite:${join(folder.path, 'source.db')}`;
      const inPostgres = await postgres.createDatabase();
      const [source, target] = from === 'sqlite' ? [onFile, inPostgres] : [inPostgres, onFile];
      const teams = await makeTeams(readDatabase({ database: source }, {}), 3);
      await withStoreAt(source, async (store) => {
        const drafts = Array.from({ length: 3000 }, (_, i) => draftTrace({ model: `m${i % 9}` }));
        for (const { id: teamId } of teams.slice(1)) await store.append([{ teamId, drafts }]);
      });
      const server = await spawnServer(['--database', source, '--log-level', 'silent']);
      t.after(() => server.end('SIGKILL').then(() => {}));
      const load = startLoad(server.url, folder.path, teams.length, 0, teams);
      await load.begun();

      const copy = startFollowing(t, source, target);
      await eventually('a copy that has caught up', 120_000, () => copy.stderr() !== '');
      assert.match(
        copy.stderr(),
        /^Caught up\. To finish the copy, stop the servers on the source \(.*server.*\)/,
      );
      const caughtUp = await tracesIn(target);
      assert.ok(caughtUp > 6000, `${caughtUp} traces`);
      await eventually(
        'copies of later traces',
        120_000,
        async () => (await tracesIn(target)) > caughtUp,
      );
      const keys = await withStoreAt(target, (store) => store.keys(null));
      assert.deepEqual(keys, [], 'no key works on an incomplete copy');
      assert.ok(copy.isRunning(), 'it has ended while the server still runs');

      // The clients go on until the server no longer answers.
      assert.equal(await server.end('SIGTERM'), 0);
      const answers = await load.end();
      const result = await copy.ended;
      const report = copyJson(result);
      assert.equal(result.stderr.split('Caught up').length, 2, 'it says so once');
      assert.deepEqual(await faultsIn(target, folder.path, teams), []);
      assert.equal(report.traces, await assertSameTraces(source, target));
      assert.equal(report.copied, report.traces, 'each was copied once');
      assert.equal(report.keys, teams.length);
      const acknowledged = readAcknowledged(folder.path).length;
      assert.ok(report.traces >= 6000 + acknowledged);
      t.diagnostic(`${acknowledged} acknowledged, ${JSON.stringify(answers)}`);
    });
  }
});
