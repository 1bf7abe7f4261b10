import assert from 'node:assert/strict';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import type { TraceWrite } from '../../src/store/trace-writer.ts';
import { eventually } from '../support/eventually.ts';
import { usePostgres } from '../support/postgres.ts';

const postgres = usePostgres();
const options = { clock: { kind: 'system' }, role: 'server' } as const;

function write(teamId: string): TraceWrite {
  return { teamId, drafts: [draftTrace({ model: 'm' })] };
}

/** Passes everything on until it falls silent; then connections are taken and nothing is answered. */
async function startSilencer() {
  const sockets = new Set<Socket>();
  let isSilent = false;
  const server = createServer((caller) => {
    const behind = connect(postgres.port, '127.0.0.1');
    for (const [socket, other] of [
      [caller, behind],
      [behind, caller],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('data', (data: Buffer) => void (isSilent || other.write(data)));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    fallSilent: () => void (isSilent = true),
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

test('when PostgreSQL falls silent, writers of many teams all get an answer in time, and nothing is stored later', async () => {
  const url = await postgres.createDatabase();
  const silencer = await startSilencer();
  const store = await openPostgresStore({
    ...options,
    url: url.replace(`:${postgres.port}/`, `:${silencer.port}/`),
  });
  const teams = await Promise.all(
    Array.from({ length: 64 }, async (_, i) => (await store.ensureTeam(`t${i}`, 1)).team.id),
  );
  silencer.fallSilent();
  const startMs = performance.now();
  const outcomes = await Promise.all(teams.map((teamId) => store.append([write(teamId)])));
  const seconds = (performance.now() - startMs) / 1000;
  const codes = outcomes.map(([outcome]) => (outcome?.kind === 'failed' ? outcome.code : 'stored'));
  // It is not known what became of calls that were sent. The others were not sent.
  const sent = codes.filter((code) => code === 'outcome_unknown');
  assert.ok(sent.length > 0);
  assert.deepEqual(
    codes.filter((code) => code !== 'outcome_unknown'),
    Array(teams.length - sent.length).fill('store_unavailable'),
  );
  // By the limits it is at most thirty; eight at a time, with ten seconds for each, would be eighty.
  assert.ok(seconds < 75, `${seconds} s`);
  const rows = await postgres.sql(url, 'select 1 from traces');
  assert.equal(rows.length, 0);
  // The rolling thread waits for PostgreSQL too.
  const closed = store.close().catch(() => {});
  await eventually('the end of the store', 60_000, async () => (await closed, true));
  silencer.close();
});

test('if a standby is required, a commit whose outcome is unknown counts only once the standby has it', async () => {
  const url = await postgres.createDatabase();
  const store = await openPostgresStore({ ...options, url });
  const { team } = await store.ensureTeam('t', 1);
  await store.append([write(team.id)]);
  const setStandby = async (names: string) => {
    await postgres.sql(url, `alter system set synchronous_standby_names = '${names}'`);
    await postgres.sql(url, 'select pg_reload_conf()');
  };
  try {
    await setStandby('absent');
    const waiting = `
      select pid from pg_stat_activity where wait_event = 'SyncRep' and datname = current_database()`;
    let isWriting = false;
    const writes: ReturnType<typeof store.append>[] = [];
    await eventually('a commit that waits for the standby', 120_000, async () => {
      // As long as the setting has not reached PostgreSQL, writes are stored at once.
      if (!isWriting) {
        isWriting = true;
        writes.push(store.append([write(team.id)]).finally(() => (isWriting = false)));
      }
      return (await postgres.sql(url, waiting)).length > 0;
    });
    await postgres.sql(url, `select pg_terminate_backend(pid) from (${waiting}) as w`);
    const [outcome] = (await writes.at(-1)) ?? [];
    assert.equal(outcome?.kind === 'failed' && outcome.code, 'outcome_unknown');
  } finally {
    await setStandby('');
  }
  await store.close();
});

test('a name in the URL does not hide a server from a copy', async () => {
  const url = await postgres.createDatabase();
  const server = await openPostgresStore({ ...options, url: `${url}?application_name=mine` });
  const tool = await openPostgresStore({ ...options, url, role: 'tool' });
  assert.match((await tool.claim()) ?? '', /^servers with \d+ connections?$/);
  await server.close();
  const isGone = async () => (await tool.claim()) === null;
  await eventually('a store without a server', 120_000, isGone, 20);
  await tool.close();
});
