import type { Bench, Finding, Goal } from '../lab/bench.ts';
import { smallPayloads } from '../lab/bodies.ts';
import { comparePages } from '../lab/compare-pages.ts';
import { compareReads } from '../lab/compare-reads.ts';
import type { Lab } from '../lab/lab.ts';
import { fire } from '../lab/load.ts';
import type { Load } from '../lab/load.ts';
import { startPostgres } from '../lab/postgres.ts';
import type { BenchPostgres } from '../lab/postgres.ts';
import { startControl, startService } from '../lab/processes.ts';
import { inTurns } from '../lab/rounds.ts';
import { median, medianRatio, milliseconds, perSecond } from '../lab/statistics.ts';
import { makeTeams } from '../lab/teams.ts';
import { postRequests, writingConnections as connections } from '../lab/writers.ts';

const bench = 'postgres';

export const postgres: Bench = {
  name: bench,
  asks: 'one server on PostgreSQL: POST /traces by one team and by 1,000 teams, compared with a bare echo server and a bare insert; reads at 1 M traces',
  async run(lab) {
    const server = await startPostgres();
    try {
      return [...(await writes(lab, server)), ...(await reads(lab, server))];
    } finally {
      await server.stop();
    }
  },
};

/** The same service and database for one team and for many, so that only the keys of the requests differ. */
async function writes(lab: Lab, server: BenchPostgres): Promise<Finding[]> {
  const { rounds, seconds, warmUpSeconds, teams } = lab.plan;
  const database = await server.emptyDatabase('writes');
  const keys = await makeTeams(database.url, teams);
  const ofOne = postRequests(lab, 'postgres-one', [database.key], smallPayloads);
  const ofMany = postRequests(lab, 'postgres-many', keys, smallPayloads);
  const echo = await startControl('echo-server.ts');
  const insert = await startControl('insert-postgres-server.ts', [
    (await server.emptyDatabase('bodies')).url,
  ]);
  const service = await startService(database.url);
  const contestants = {
    E: { url: echo.url, requests: ofOne },
    G: { url: insert.url, requests: ofOne },
    one: { url: service.url, requests: ofOne },
    many: { url: service.url, requests: ofMany },
  };
  for (const { url, requests } of Object.values(contestants)) {
    await fire(url, requests, { connections, seconds: warmUpSeconds });
  }
  // Otherwise what 1,000 teams leave to be rolled up would slow down whatever is measured next, the controls too.
  const measure = (name: keyof typeof contestants) => async () => {
    await server.untilRolledUp(database.url);
    return fire(contestants[name].url, contestants[name].requests, { connections, seconds });
  };
  const { E, G, one, many } = await inTurns(
    2 * rounds,
    { E: measure('E'), G: measure('G'), one: measure('one'), many: measure('many') },
    { bothOrders: true },
  );
  await echo.stop();
  await insert.stop();
  await service.stop();

  const [oneRates, manyRates] = [ratesOf(one), ratesOf(many)];
  return [
    ...besideEcho('one team', one, E, { atLeast: 0.4 }),
    ...besideEcho('1,000 teams', many, E, null),
    ...besideEcho('control G', G, E, null),
    {
      bench,
      what: 'requests per second of 1,000 teams',
      value: medianRatio(manyRates, oneRates),
      unit: '× one team',
      goal: { atLeast: 0.8 },
      detail: `${perSecond(manyRates)}; one team ${perSecond(oneRates)}`,
    },
  ];
}

function besideEcho(
  who: string,
  ours: readonly Load[],
  echo: readonly Load[],
  goal: Goal | null,
): Finding[] {
  const [rates, echoRates] = [ratesOf(ours), ratesOf(echo)];
  const [p99s, echoP99s] = [ours, echo].map((loads) => loads.map(({ p99Us }) => p99Us));
  return [
    {
      bench,
      what: `${who}: requests per second`,
      value: medianRatio(rates, echoRates),
      unit: '× E',
      goal,
      detail: `${perSecond(rates)}; E ${perSecond(echoRates)}`,
    },
    {
      bench,
      what: `${who}: p99 latency`,
      value: median(p99s ?? []) / median(echoP99s ?? []),
      unit: '× E',
      goal: null,
      detail: `${milliseconds(p99s ?? [])}; E ${milliseconds(echoP99s ?? [])}`,
    },
  ];
}

function ratesOf(loads: readonly Load[]): number[] {
  return loads.map((load) => load.perSecond);
}

async function reads(lab: Lab, server: BenchPostgres): Promise<Finding[]> {
  const small = await server.filledDatabase(lab.plan.small);
  const large = await server.filledDatabase(lab.plan.middle);
  const control = await startControl('select-one-postgres-server.ts', [small.url]);
  const findings = await compareReads(lab, {
    bench,
    datasets: [
      { dataset: small, size: '10 k' },
      { dataset: large, size: '1 M' },
    ],
    control,
    controlName: 'P',
    controlGoal: null,
  });
  await control.stop();
  return [...findings, ...(await comparePages(lab, bench, large))];
}
