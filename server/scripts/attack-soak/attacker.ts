/** The program of the attacker: `node attacker.ts SCENE_FILE`. All attacks go on at once, each in waves with random pauses. */
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../src/errors.ts';
import { seededRandom } from '../../test/support/seeded-random.ts';
import type { AttackContext, AttackTally } from './attack-socket.ts';
import { attackNames } from './attack-names.ts';
import type { AttackName } from './attack-names.ts';
import { bracketBodies, gzipBombs, hostileBodies, overload } from './body-attacks.ts';
import { count } from './honest-client.ts';
import { beginProgram } from './program.ts';
import {
  pipelinedLargeReads,
  slowPages,
  unreadLargeReads,
  wideBreakdowns,
} from './read-attacks.ts';
import { anonymousFlood, garbage, halfOpen } from './socket-attacks.ts';
import { idleBodies, pipelinedUnread, wrongKeys } from './socket-attacks.ts';

const attacks: Record<AttackName, (context: AttackContext) => Promise<void>> = {
  'pipelined unread': pipelinedUnread,
  'pipelined large reads': pipelinedLargeReads,
  'unread large reads': unreadLargeReads,
  'idle bodies': idleBodies,
  'wide breakdowns': wideBreakdowns,
  'anonymous flood': anonymousFlood,
  'half open': halfOpen,
  'bracket bodies': bracketBodies,
  'gzip bombs': gzipBombs,
  'hostile bodies': hostileBodies,
  garbage,
  'wrong keys': wrongKeys,
  overload,
  'slow pages': slowPages,
};

/** The pauses leave most of the machine to the service and to the honest clients. */
const firstPauseMsMax = 10_000;
const pauseMsMin = 4_000;
const pauseMsMax = 20_000;

const { scene, stopped, print } = beginProgram();
const tally: AttackTally = { waves: {}, requests: 0, answers: {}, answered: {}, mistakes: {} };
const reporting = setInterval(() => print(tally), 1000);

async function wage(name: AttackName, random: () => number): Promise<void> {
  const context: AttackContext = { name, scene, random, stopped, tally };
  const pause = (ms: number): Promise<void> =>
    sleep(ms, undefined, { signal: stopped }).catch(() => {});
  await pause(random() * firstPauseMsMax);
  while (!stopped.aborted) {
    try {
      await attacks[name](context);
      count(tally.waves, name);
    } catch (error) {
      count(tally.mistakes, `${name}: ${messageOf(error)}`);
    }
    await pause(pauseMsMin + random() * (pauseMsMax - pauseMsMin));
  }
}

await Promise.all(attackNames.map((name, i) => wage(name, seededRandom(scene.seed * 100 + i))));
clearInterval(reporting);
print(tally);
process.exit(0);
