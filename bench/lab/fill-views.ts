/**
 * Fills a SQLite file for the bench `views`: traces over a year with 12 models, 40 features and 5,000 users. Arguments: the file, and how
 * many traces. Prints an API key.
 */
import { draftTrace } from '../../server/src/core/trace.ts';
import type { TraceDraft } from '../../server/src/core/trace-fields.ts';
import { openStore } from '../../server/src/store/open-store.ts';
import { makeKey } from '../../server/src/store/teams-and-keys.ts';
import { seededRandom } from '../../server/test/support/seeded-random.ts';

const [, , path = '', countText = '1000'] = process.argv;
const count = Number(countText);
const random = seededRandom(12);
const yearUs = 365 * 86_400_000_000;
const nowUs = Date.now() * 1000;
const batchRows = 1_000;
const rollRows = 16_384;

const words =
  'the of a to in is you that it he was for on are with as his they be at one have this'.split(' ');
const text = (length: number): string =>
  Array.from({ length }, () => words[Math.floor(random() * words.length)]).join(' ');
/** A few have most of the calls. */
const skewed = (most: number): number => Math.floor(most * random() ** 2);

function draftAt(i: number): TraceDraft {
  const model = skewed(12);
  const isError = random() < 0.05;
  return draftTrace({
    model: `model-${model}`,
    provider: `provider-${model % 4}`,
    environment: random() < 0.8 ? 'production' : 'staging',
    feature_name: `feature-${skewed(40)}`,
    user_identifier: `user-${skewed(5_000)}`,
    session_id: `session-${Math.floor(i / 8)}`,
    prompt_tokens: Math.floor(random() * 4_000),
    completion_tokens: Math.floor(random() * 1_000),
    latency_ms: Math.floor(200 + 20_000 * random() ** 4),
    cost_usd: Math.floor(random() * 50_000) / 1e6,
    started_at: new Date((nowUs - yearUs + (yearUs * i) / count) / 1000).toISOString(),
    input: `${text(60)} number ${i}`,
    output: text(120),
    ...(isError ? { error_message: 'the provider failed', error_type: 'timeout' } : {}),
  });
}

const store = await openStore(
  { kind: 'sqlite', path },
  { clock: { kind: 'system' }, role: 'server', rolling: 'manual' },
);
const { team } = await store.ensureTeam('views', nowUs);
const { key, record } = makeKey({ name: null, scope: 'full', nowUs, expiresAtUs: null });
await store.createKey(team.id, record);
for (let at = 0; at < count; at += batchRows) {
  const length = Math.min(batchRows, count - at);
  const drafts = Array.from({ length }, (_, i) => draftAt(at + i));
  await store.append([{ teamId: team.id, drafts }]);
}
{
  while ((await store.roll(team.id, rollRows)) > 0);
}
await store.close();
process.stdout.write(`${key}\n`);
