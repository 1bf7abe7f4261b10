import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Bench, Finding } from '../lab/bench.ts';
import { runProgram } from '../lab/children.ts';
import type { Lab } from '../lab/lab.ts';
import { startService } from '../lab/processes.ts';
import { median } from '../lab/statistics.ts';

const bench = 'views';
const msMax = 300;
const searchMsMax = 2_000;
/** Each time about another user, model and day, so that no answer is cached. */
const times = 5;

/** The requests of the pages of a dashboard. `n` is different each time. */
export const requests: Record<string, (n: number) => string[]> = {
  'overview, all time': () => [
    '/analytics/overview',
    '/analytics/by-model',
    '/analytics/by-feature',
  ],
  'overview, 24 hours': (n) => overview('last=24h', 'hour', n),
  'overview, 30 days': (n) => overview(`from=${day(30 + n)}&to=${day(n)}`, 'day', n),
  'overview, 90 days': (n) => overview(`from=${day(90 + n)}&to=${day(n)}`, 'day', n),
  'overview, a year': (n) => overview(`from=${day(364)}&to=${day(n)}`, 'week', n),
  'overview, 30 days of a user': (n) => [
    ...overview(`last=30d&user_identifier=user-${n * 100}`, 'day', n),
    `/analytics/by-user?last=30d&user_identifier=user-${n * 100}`,
  ],
  'overview, a year of a user': (n) =>
    overview(`from=${day(364)}&user_identifier=user-${7 + n * 100}`, 'week', n),
  'overview, 30 days of a model and a feature': (n) =>
    overview(`last=30d&model=model-${n}&feature_name=feature-${n}`, 'day', n),
  'users, 30 days': (n) => users(`from=${day(30 + n)}&to=${day(n)}`),
  'users, 90 days': (n) => users(`from=${day(90 + n)}&to=${day(n)}`),
  'users, a year': (n) => users(`from=${day(364)}&to=${day(n)}`),
  'users, all time': () => users(''),
  'users, 30 days of a model': (n) => users(`from=${day(30 + n)}&to=${day(n)}&model=model-${n}`),
  'traces of a user': (n) => [traces(`user_identifier=user-${n * 100}&last=30d`)],
  'traces of a model with errors, 90 days': (n) => [
    traces(`model=model-${n}&status=error&from=${day(90 + n)}`),
  ],
  'traces of one day, ten months ago': (n) => [traces(`from=${day(300 + n)}&to=${day(300 + n)}`)],
  'traces of a session': (n) => [
    `/traces?session_id=session-${n * 1_000}&order=started_at`,
    traces(`session_id=session-${n * 1_000}`),
  ],
};

export const searches: Record<string, (n: number) => string> = {
  'q that matches often': (n) => traces(`q=number%20${n + 1}`),
  'q that matches once': (n) => traces(`q=number%20${n * 1_000}%20nowhere`),
  'q of a user': (n) => traces(`q=number&user_identifier=user-${n * 100}`),
};

function day(before: number): string {
  return new Date(Date.now() - before * 86_400_000).toISOString().slice(0, 10);
}

function overview(about: string, interval: string, n: number): string[] {
  const field = ['model', 'feature_name', 'environment'][n % 3];
  return [
    `/analytics/query?${about}`,
    `/analytics/query?${about}&interval=${interval}&fill=zero`,
    `/analytics/query?${about}&interval=${interval}&group_by=${field}&limit=8`,
    `/analytics/by-model?${about}`,
    `/analytics/by-feature?${about}`,
  ];
}

function users(about: string): string[] {
  return [
    `/analytics/query?${about}&group_by=user_identifier&limit=50`,
    `/analytics/by-user?${about}&limit=50`,
  ];
}

function traces(about: string): string {
  return `/traces?${about}&limit=50&omit=output&preview_chars=200`;
}

export const views: Bench = {
  name: bench,
  asks: 'every request of a dashboard on 1 M traces of 12 models, 40 features and 5,000 users, and searches for text',
  async run(lab) {
    const { path, key } = await filled(lab);
    const service = await startService(`sqlite:${path}`);
    const time = async (request: string): Promise<number> => {
      const startMs = performance.now();
      const headers = { authorization: `Bearer ${key}` };
      const reply = await fetch(`${service.url}${request}`, { headers });
      const text = await reply.text();
      if (reply.status !== 200) throw new Error(`${request}: ${reply.status} ${text}`);
      return performance.now() - startMs;
    };
    // Starts the reading thread, and reads the file into the page cache.
    await time(users('last=2d')[0] ?? '');
    const findings: Finding[] = [];
    for (const [what, requestsOf] of Object.entries(requests)) {
      findings.push(await slowest(what, requestsOf, time, msMax));
    }
    for (const [what, requestOf] of Object.entries(searches)) {
      findings.push(await slowest(what, (n) => [requestOf(n)], time, searchMsMax));
    }
    await service.stop();
    return findings;
  },
};

/** The slowest request of a view: the median of its times. */
async function slowest(
  what: string,
  requestsOf: (n: number) => string[],
  time: (request: string) => Promise<number>,
  goalMs: number,
): Promise<Finding> {
  const taken: number[][] = [];
  for (let n = 0; n < times; n++) {
    for (const [i, request] of requestsOf(n).entries()) {
      taken[i] = [...(taken[i] ?? []), await time(request)];
    }
  }
  const medians = taken.map(median);
  const value = Math.max(...medians);
  const longest = Math.max(...taken.flat());
  const request = requestsOf(0)[medians.indexOf(value)] ?? '';
  const detail = `${request.split('&limit')[0]}; at most ${longest.toFixed(0)} ms`;
  return { bench, what, value, unit: 'ms', goal: { atMost: goalMs }, detail };
}

/** A file of its own, kept with the others. */
async function filled(lab: Lab): Promise<{ path: string; key: string }> {
  const path = lab.dataFile(`views-${lab.plan.middle}.db`);
  const keyFile = `${path}.key`;
  if (!existsSync(keyFile)) {
    lab.say(
      `  filling a database with ${lab.plan.middle.toLocaleString('en')} traces of 5,000 users …`,
    );
    const program = fileURLToPath(new URL('../lab/fill-views.ts', import.meta.url));
    const key = await runProgram(process.execPath, [program, path, String(lab.plan.middle)]);
    writeFileSync(keyFile, key);
  }
  return { path, key: readFileSync(keyFile, 'utf8').trim() };
}
