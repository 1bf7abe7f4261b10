/**
 * Fills a SQLite file for the bench `prices`: traces without a cost over a month, of 12 models, 40 features and 5,000 users, each with the
 * same number of tokens. Arguments: the file, and how many traces. Prints an API key.
 */
import { draftTrace } from '../../server/src/core/trace.ts';
import { openStore } from '../../server/src/store/open-store.ts';
import { makeKey } from '../../server/src/store/teams-and-keys.ts';
import { seededRandom } from '../../server/test/support/seeded-random.ts';

const [, , path = '', countText = '1000'] = process.argv;
const count = Number(countText);
const random = seededRandom(17);
const monthUs = 30 * 86_400_000_000;
const nowUs = Date.now() * 1000;
const batchRows = 1_000;
const skewed = (most: number): number => Math.floor(most * random() ** 2);

const store = await openStore(
  { kind: 'sqlite', path },
  { clock: { kind: 'system' }, role: 'server', rolling: 'manual' },
);
const { team } = await store.ensureTeam('bench', nowUs);
const { key, record } = makeKey({ name: null, scope: 'full', nowUs, expiresAtUs: null });
await store.createKey(team.id, record);
for (let at = 0; at < count; at += batchRows) {
  const drafts = Array.from({ length: Math.min(batchRows, count - at) }, (_, i) =>
    draftTrace({
      model: `model-${skewed(12)}`,
      feature_name: `feature-${skewed(40)}`,
      user_identifier: `user-${skewed(5_000)}`,
      environment: random() < 0.8 ? 'production' : 'staging',
      prompt_tokens: 1_000,
      completion_tokens: 100,
      latency_ms: Math.floor(200 + 20_000 * random() ** 4),
      started_at: new Date((nowUs - monthUs + (monthUs * (at + i)) / count) / 1000).toISOString(),
      input: `a prompt with the number ${at + i}`,
      output: 'an answer',
    }),
  );
  await store.append([{ teamId: team.id, drafts }]);
}
{
  while ((await store.roll(team.id, 16_384)) > 0);
}
await store.close();
process.stdout.write(`${key}\n`);
