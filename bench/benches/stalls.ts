import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench, Finding } from '../lab/bench.ts';
import type { Lab } from '../lab/lab.ts';
import { startPaced } from '../lab/paced.ts';
import type { PacedView } from '../lab/paced.ts';
import { startService, tracetally } from '../lab/processes.ts';
import { pauseRolling } from '../lab/rollup-files.ts';
import { copyUncosted } from '../lab/uncosted.ts';

const bench = 'stalls';
const perSecond = 1_000;
const secondsFactor = 15;
/** What one thing leaves behind, such as tails and changes, should not slow down the next one. */
const settleSeconds = 8;
const modelPrice = ['--input', '2', '--output', '10'];

export const stalls: Bench = {
  name: bench,
  asks: '1,000 single writes per second of 5,000 users: how long they take beside rolls, questions, verify, backup and reprice',
  async run(lab) {
    const now = await measure(lab, null);
    const control = viewOf(now, pausedName);
    const findings = describe(now, control, '');
    if (lab.compared === null) return findings;
    const before = await measure(lab, lab.compared.against);
    return [...findings, ...describe(before, control, 'before: ')];
  },
};

const pausedName = 'nothing, rolling paused';

/** What a write met beside one thing. */
interface Beside {
  name: string;
  view: PacedView;
  detail: string;
}

interface Stage {
  url: string;
  key: string;
  path: string;
  backupPath: string;
  checkout: string | null;
  database: string;
  seconds: number;
}

/** Each takes its time and says what it did. */
type Things = Readonly<Record<string, (stage: Stage) => Promise<string>>>;

const things: Things = {
  nothing: async ({ seconds }) => {
    await sleep(seconds * 1_000);
    return '';
  },
  'a by-user question in a loop': (stage) =>
    askInLoop(stage, '/analytics/query?last=30d&group_by=user_identifier&order=-p95_latency_ms'),
  'a search in a loop': (stage) => askInLoop(stage, '/traces?q=found%20nowhere&limit=50'),
  backup: (stage) => run(stage, ['backup', stage.backupPath]),
  verify: (stage) => run(stage, ['verify']),
  reprice: async (stage) => {
    const day = new Date(Date.now() - 40 * 86_400_000).toISOString().slice(0, 10);
    return run(stage, ['reprice', '--from', day]);
  },
};

/** The control: the roller waits for a lock, and nothing else runs. It is measured first and last, since the machine changes meanwhile. */
const paused: Things = {
  [pausedName]: async ({ path, seconds }) => {
    const release = pauseRolling(path);
    await sleep(seconds * 1_000);
    release();
    return '';
  },
};

async function measure(lab: Lab, checkout: string | null): Promise<Beside[]> {
  const name = `stalls${checkout === null ? '' : '-before'}`;
  const path = lab.file(`${name}.db`);
  const key = await copyUncosted(lab, path, lab.plan.middle, checkout);
  const database = `sqlite:${path}`;
  for (let model = 0; model < 12; model++) {
    await tracetally(database, ['prices', 'set', `model-${model}`, ...modelPrice], checkout);
  }
  const service = await startService(database, checkout);
  const seconds = secondsFactor * lab.plan.seconds;
  const backupPath = lab.file(`${name}-backup.db`);
  const stage: Stage = { url: service.url, key, path, backupPath, checkout, database, seconds };
  // It is stopped long before.
  const paced = startPaced(service.url, key, { perSecond, seconds: 3_600 });
  await sleep(2_000 * lab.plan.warmUpSeconds);
  const controls = checkout === null ? Object.entries(paused) : [];
  const spans = new Map<string, { spans: [number, number][]; detail: string }>();
  for (const [thing, act] of [...controls, ...Object.entries(things), ...controls]) {
    const load = loadavg()[0]?.toFixed(1) ?? '';
    const startMs = Date.now();
    const did = await act(stage);
    const known = spans.get(thing)?.spans ?? [];
    const detail = `${did}load average ${load}`;
    spans.set(thing, { spans: [...known, [startMs, Date.now()]], detail });
    await sleep(settleSeconds * 1_000);
    lab.say(
      `  ${name} beside ${thing}: ${milliseconds(paced.view([startMs, Date.now()]))}; ${detail}`,
    );
  }
  const measured = [...spans].map(([thing, { spans: own, detail }]) => {
    return { name: thing, view: paced.view(...own), detail };
  });
  await paced.stop();
  await service.stop();
  return measured;
}

/** Runs a command. */
async function run({ database, checkout }: Stage, args: readonly string[]): Promise<string> {
  const startMs = performance.now();
  const { teams } = await tracetally(database, args, checkout);
  const [team] = Array.isArray(teams) ? (teams as { changed?: number }[]) : [];
  const changed =
    team?.changed === undefined ? '' : `${team.changed.toLocaleString('en')} traces in `;
  return `${changed}${((performance.now() - startMs) / 1_000).toFixed(0)} s, `;
}

async function askInLoop({ url, key, seconds }: Stage, path: string): Promise<string> {
  const headers = { authorization: `Bearer ${key}` };
  const endMs = performance.now() + seconds * 1_000;
  let [answers, slowestMs] = [0, 0];
  while (performance.now() < endMs) {
    const startMs = performance.now();
    const reply = await fetch(`${url}${path}`, { headers });
    await reply.text();
    if (reply.status !== 200) throw new Error(`GET ${path}: ${reply.status}`);
    answers += 1;
    slowestMs = Math.max(slowestMs, performance.now() - startMs);
  }
  return `${answers} answers, the slowest in ${slowestMs.toFixed(0)} ms, `;
}

function viewOf(measured: readonly Beside[], name: string): PacedView {
  const found = measured.find((one) => one.name === name);
  if (!found) throw new Error(`"${name}" was not measured`);
  return found.view;
}

function describe(measured: readonly Beside[], control: PacedView, prefix: string): Finding[] {
  return measured.map(({ name, view, detail }) => {
    const share = (of: 'p50Ms' | 'p90Ms' | 'p99Ms' | 'slowestMs'): string =>
      (view[of] / control[of]).toFixed(1);
    const ratios = `${share('p50Ms')}, ${share('p90Ms')}, ${share('p99Ms')}, ${share('slowestMs')}`;
    return {
      bench,
      what: `${prefix}p99 of a write beside ${name}`,
      value: view.p99Ms / control.p99Ms,
      unit: '× rolling paused',
      goal: null,
      detail: `${milliseconds(view)}; × ${ratios}; ${view.failed} of ${view.writes} failed; ${detail}`,
    };
  });
}

function milliseconds({ p50Ms, p90Ms, p99Ms, slowestMs }: PacedView): string {
  const times = [p50Ms, p90Ms, p99Ms, slowestMs].map((ms) => ms.toFixed(ms < 100 ? 1 : 0));
  return `p50, p90, p99, max ${times.join(', ')} ms`;
}
