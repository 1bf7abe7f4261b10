/** The program of the honest clients: `node honest-load.ts SCENE_FILE`. It prints its tally every second, and once more at its end. */
import { seededRandom } from '../../test/support/seeded-random.ts';
import { runHonestClient } from './honest-client.ts';
import type { HonestTally, HonestTeam } from './honest-client.ts';
import { openRequestLog } from '../../test/support/request-log.ts';
import { beginProgram } from './program.ts';

const clientsPerTeam = 3;

const { scene, isStopping, print } = beginProgram();
const tally: HonestTally = {
  requests: 0,
  serverErrors: 0,
  noAnswers: 0,
  slowestMs: 0,
  operations: 0,
  failed: 0,
  acknowledged: 0,
  stale: 0,
  reasons: {},
};
const log = openRequestLog(scene.requestLogPath);
const reporting = setInterval(() => print(tally), 1000);
const clients = scene.honestTeams.flatMap(({ key }, index) => {
  const team: HonestTeam = { index, key, acknowledged: 0 };
  return Array.from({ length: clientsPerTeam }, (_, no) => {
    const random = seededRandom(scene.seed + index * clientsPerTeam + no);
    const context = { url: scene.url, random, log, tally, isStopping };
    return runHonestClient(context, team, `team${index}-client${no}`);
  });
});
await Promise.all(clients);
clearInterval(reporting);
log.close();
print(tally);
process.exit(0);
