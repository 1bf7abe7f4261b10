import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { needDashboard } from '../../server/test/support/dashboard.ts';
import type { Bench, Finding } from '../lab/bench.ts';
import { runProgram } from '../lab/children.ts';
import type { Lab } from '../lab/lab.ts';
import { openDashboard } from '../lab/page-requests.ts';
import type { AskedRequest } from '../lab/page-requests.ts';
import { startService } from '../lab/processes.ts';

const bench = 'views';
const msMax = 300;
const searchMsMax = 2_000;
/** Each time about another user, model and day. */
const times = 3;

/** Addresses of the dashboard. `n` is different each time. */
const addresses: Record<string, (n: number) => string> = {
  'overview, 24 hours': () => '#/?last=24h',
  'overview, 7 days': () => '#/',
  'overview, 30 days': (n) => `#/?last=30d&stack=${fields[n]}`,
  'overview, 90 days': (n) => `#/?last=90d&stack=${fields[n]}&split=provider`,
  'overview, last month': (n) => `#/?period=last-month&stack=${fields[n]}&split=environment`,
  'overview, a year': (n) => `#/?from=${day(364)}&to=${day(n)}&stack=${fields[n]}`,
  'overview, all time': (n) => `#/?period=all&stack=${fields[n]}`,
  'overview, error types of 90 days': (n) =>
    `#/?last=90d&status=error&split=error_type&stack=${fields[n]}`,
  'overview of a user, 24 hours': (n) => `#/?last=24h&user_identifier=${user(n)}`,
  'overview of a user, 30 days': (n) => `#/?last=30d&user_identifier=${user(n)}`,
  'overview of a user, a year': (n) =>
    `#/?from=${day(364)}&to=${day(0)}&user_identifier=${user(n)}&stack=${fields[n]}`,
  'overview of a user and a model, all time': (n) =>
    `#/?period=all&user_identifier=${user(n)}&model=model-${n}`,
  'overview of a model and a feature, 90 days': (n) =>
    `#/?last=90d&model=model-${n}&feature_name=feature-${n}`,
  'users, 7 days': () => '#/users',
  'users, 30 days': (n) => `#/users?last=30d&order=${orders[n]}`,
  'users, 90 days': (n) => `#/users?last=90d&order=${orders[n]}`,
  'users, a year': (n) => `#/users?from=${day(364)}&to=${day(0)}&order=${orders[n]}`,
  'users, all time': (n) => `#/users?period=all&order=${orders[n]}`,
  'users, a search in all time': (n) => `#/users?period=all&search=${user(n)}`,
  'users of a model, 30 days': (n) => `#/users?last=30d&model=model-${n}`,
  'traces, the last page': (n) => `#/traces?page=${20_000 - n}`,
  'traces of a user, all time': (n) => `#/traces?user_identifier=${user(n)}`,
  'traces of a user and a model, 90 days': (n) =>
    `#/traces?last=90d&user_identifier=${user(n)}&model=model-${n}`,
  'failed traces of a model, 90 days': (n) => `#/traces?last=90d&model=model-${n}&status=error`,
  'traces of a day, ten months ago': (n) => `#/traces?from=${day(300 + n)}&to=${day(300 + n)}`,
  'traces of a session': (n) => `#/traces?session_id=session-${n * 1_000}`,
};

const searches: Record<string, (n: number) => string> = {
  'q that matches often': (n) => traces(`q=number%20${n + 1}`),
  'q that matches nowhere': (n) => traces(`q=number%20${n * 1_000}%20nowhere`),
  'q of a user': (n) => traces(`q=number&user_identifier=${user(n)}`),
};

const fields = ['model', 'feature_name', 'environment'];
const orders = ['cost', 'errors', 'p95'];

/** The first ones have the most calls. */
function user(n: number): string {
  return `user-${n * 100}`;
}

function day(before: number): string {
  return new Date(Date.now() - before * 86_400_000).toISOString().slice(0, 10);
}

function traces(about: string): string {
  return `/traces?${about}&limit=50&omit=output&preview_chars=1000`;
}

export const views: Bench = {
  name: bench,
  asks: 'every request of the dashboard on 1 M traces of 12 models, 40 features and 5,000 users, and searches for text',
  async run(lab) {
    needDashboard();
    const { path, key } = await filled(lab);
    const visits = await learnRequests(path, key);
    // A new process, so that every view is new to it.
    const service = await startService(`sqlite:${path}`);
    const ask = openRequests(service.url, key);
    const askAll = (paths: readonly string[]): Promise<AskedRequest[]> =>
      Promise.all(paths.map(async (request) => ({ request, ms: await msOf(ask('GET', request)) })));
    // Starts the reading thread.
    await ask('GET', '/analytics/by-user?last=2d');
    const findings: Finding[] = [];
    for (const [what, requests] of visits) {
      const answered = await repeated(requests.length, async (n) => {
        // A new trace, so that no answer is cached.
        await ask('POST', '/traces', { model: 'model-0', user_identifier: user(n) });
        return askAll(requests[n] ?? []);
      });
      findings.push(finding(what, answered, msMax));
    }
    for (const [what, requestOf] of Object.entries(searches)) {
      findings.push(
        finding(what, await repeated(times, (n) => askAll([requestOf(n)])), searchMsMax),
      );
    }
    await service.stop();
    return findings;
  },
};

/**
 * What the page requests in each visit of each view. The browser itself would take most of the two cores while the page is loading, so the
 * requests are sent again without it.
 */
async function learnRequests(path: string, key: string): Promise<Map<string, string[][]>> {
  const service = await startService(`sqlite:${path}`);
  const page = await openDashboard(service.url, key);
  const ask = openRequests(service.url, key);
  const requests = new Map<string, string[][]>();
  const visit = async (address: string): Promise<string[]> =>
    (await page.visit(address)).map(({ request }) => request);
  try {
    for (const [what, addressOf] of Object.entries(addresses)) {
      requests.set(what, await repeated(times, (n) => visit(addressOf(n))));
    }
    const list = await ask('GET', traces('session_id=session-7'));
    const {
      traces: [trace],
    } = JSON.parse(list) as { traces: { id: string }[] };
    requests.set('a trace', [await visit(`#/traces/${trace?.id}`)]);
  } finally {
    await page.close();
    await service.stop();
  }
  return requests;
}

async function repeated<T>(count: number, act: (n: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  for (let n = 0; n < count; n++) results.push(await act(n));
  return results;
}

function openRequests(url: string, key: string) {
  return async (method: 'GET' | 'POST', path: string, body?: object): Promise<string> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const reply = await fetch(`${url}${path}`, { method, headers, ...sent });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${path}: ${reply.status} ${text}`);
    return text;
  };
}

async function msOf(act: Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await act;
  return performance.now() - startMs;
}

/** The slowest request of all visits. The requests of a visit are sent at the same time, as the page does. */
function finding(what: string, visits: readonly AskedRequest[][], goalMs: number): Finding {
  const slowest = visits.map((asked) => asked.reduce((a, b) => (b.ms > a.ms ? b : a)));
  const longest = slowest.reduce((a, b) => (b.ms > a.ms ? b : a));
  const each = slowest.map(({ ms }) => ms.toFixed(0)).join(', ');
  const detail = `${visits[0]?.length} requests; slowest of each visit ${each} ms; ${longest.request}`;
  return { bench, what, value: longest.ms, unit: 'ms', goal: { atMost: goalMs }, detail };
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
