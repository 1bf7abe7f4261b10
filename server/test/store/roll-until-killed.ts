/** Writes and rolls up without end: `node roll-until-killed.ts PATH`. Prints how many traces are acknowledged. */
import { draftTrace } from '../../src/core/trace.ts';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';

const [path = ''] = process.argv.slice(2);
const store = await openSqliteStore({
  path,
  clock: { kind: 'system' },
  role: 'server',
  rollBounds: { hotTailRows: 1, wideTailRows: 1 },
});
const { team } = await store.ensureTeam('t', 1);
let { lastSeq } = await store.counter(team.id);
for (;;) {
  const drafts = [0, 1, 2].map((i) =>
    draftTrace({
      model: `m${i}`,
      user_identifier: `u${lastSeq % 50}`,
      latency_ms: lastSeq,
      cost_usd: 0.1,
    }),
  );
  const [outcome] = await store.append([{ teamId: team.id, drafts }]);
  if (outcome?.kind !== 'stored') throw new Error(JSON.stringify(outcome));
  lastSeq += drafts.length;
  process.stdout.write(`${lastSeq}\n`);
}
