/**
 * The long form of the crash tests: `npm run test:soak -- --rounds 300 [--seed N]`. Rounds are those of kill -9 and of the power cut; with a seed
 * that a failure printed, the same moments come again.
 */
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { chooseSeed } from '../test/support/seeded-random.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '200' },
    seed: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help || !/^[1-9][0-9]{0,4}$/.test(values.rounds)) {
  process.stdout.write('Usage: npm run test:soak -- [--rounds 200] [--seed N]\n');
  process.exit(values.help ? 0 : 2);
}
const seed = values.seed ?? String(chooseSeed());
process.stdout.write(`rounds ${values.rounds}, seed ${seed}\n`);
const server = fileURLToPath(new URL('../', import.meta.url));
const files = globSync('test/{alone,guarantees}/*.test.ts', { cwd: server });
const { status } = spawnSync(
  'env',
  [
    `CRASH_ROUNDS=${values.rounds}`,
    `TEST_SEED=${seed}`,
    process.execPath,
    '--test',
    '--test-concurrency=1',
    ...files,
  ],
  { cwd: server, stdio: 'inherit' },
);
if (status !== 0) process.stdout.write(`failed with --rounds ${values.rounds} --seed ${seed}\n`);
process.exit(status ?? 1);
