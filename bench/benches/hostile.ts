import { setTimeout as sleep } from 'node:timers/promises';
import { generatedBodies, knownBodies } from '../../server/test/support/hostile-bodies.ts';
import type { HostileBody } from '../../server/test/support/hostile-bodies.ts';
import type { Bench } from '../lab/bench.ts';
import { flood, listAnswers } from '../lab/flood.ts';
import { startPaced } from '../lab/paced.ts';
import type { PacedView } from '../lab/paced.ts';
import { makeKey, residentMb, startService } from '../lab/processes.ts';

const connections = 3;
const idleSeconds = 15;
const secondsMax = 3_600;

export const hostile: Bench = {
  name: 'hostile',
  asks: 'bodies that were made to be slow, beside another team: its slowest write, the slowest /healthz, and memory',
  async run(lab) {
    const database = await lab.emptyDatabase('hostile');
    const honest = await makeKey(database.url, 'honest');
    const service = await startService(database.url);
    const paced = startPaced(service.url, honest, { perSecond: 50, seconds: secondsMax });
    const since = (fromMs: number): PacedView => paced.view([fromMs, Date.now()]);
    let peakMb = 0;
    const sampling = setInterval(() => (peakMb = Math.max(peakMb, residentMb(service.pid))), 20);
    await sleep(lab.plan.warmUpSeconds * 1_000);
    const idleFromMs = Date.now();
    await sleep(idleSeconds * 1_000);
    const idle = since(idleFromMs);
    const idleMb = residentMb(service.pid);

    const every = lab.plan.rounds === 1 ? 40 : 1;
    const bodies = [...knownBodies(), ...knownBodies(10), ...generatedBodies()];
    const seen: { name: string; view: PacedView; answers: string }[] = [];
    for (const body of bodies.filter((_, i) => i % every === 0)) {
      seen.push(await attack(body));
    }
    clearInterval(sampling);
    const stopMs = await stopBesideHostileBody();
    await paced.stop();
    seen.sort((a, b) => worst(b.view) - worst(a.view));
    for (const { name, view, answers } of seen.slice(0, 12)) {
      lab.say(`  ${worst(view).toFixed(0)} ms beside ${name}: ${answers}`);
    }
    const slowest = seen[0];
    if (!slowest) throw new Error('no body was sent');
    const idleMs = worst(idle);
    const failed = seen.reduce((sum, { view }) => sum + view.failed, 0);
    return [
      {
        bench: 'hostile',
        what: 'slowest write or /healthz of another team',
        value: worst(slowest.view),
        unit: 'ms',
        goal: { atMost: Math.max(500, 10 * idleMs) },
        detail: `beside ${slowest.name}; idle ${idleMs.toFixed(0)} ms; ${seen.length} bodies, ${failed} honest requests failed`,
      },
      {
        bench: 'hostile',
        what: 'memory above idle',
        value: peakMb - idleMb,
        unit: 'MB',
        goal: { atMost: 400 },
        detail: `${connections} of each body at once; idle ${idleMb.toFixed(0)} MB`,
      },
      {
        bench: 'hostile',
        what: 'stop beside such a body',
        value: stopMs,
        unit: 'ms',
        goal: { atMost: 10_000 },
        detail: 'from SIGTERM to the end of the process',
      },
    ];

    async function attack({ name, path, headers, body }: HostileBody) {
      const made = body();
      const fromMs = Date.now();
      const request = { path, headers, body: made };
      const answers = await flood(service.url, database.key, request, { connections, untilMs: 0 });
      // What the body left behind counts, too.
      await sleep(50);
      return { name, view: since(fromMs), answers: listAnswers(answers) };
    }

    async function stopBesideHostileBody(): Promise<number> {
      const [first] = generatedBodies();
      if (!first) throw new Error('there are no bodies');
      const { path, headers } = first;
      const request = { path, headers, body: first.body() };
      const sending = flood(service.url, database.key, request, { connections, untilMs: 0 });
      await sleep(100);
      const startMs = performance.now();
      await service.stop();
      const tookMs = performance.now() - startMs;
      await sending;
      return tookMs;
    }
  },
};

function worst({ slowestMs, slowestHealthMs }: PacedView): number {
  return Math.max(...[slowestMs, slowestHealthMs].filter((ms) => !Number.isNaN(ms)));
}
