import type { Bench, Finding } from '../lab/bench.ts';
import { smallPayloads, traceBodies } from '../lab/bodies.ts';
import { compareServices, cpuDetail } from '../lab/compare-services.ts';
import type { Lab } from '../lab/lab.ts';
import { fire } from '../lab/load.ts';
import { startControl, startService } from '../lab/processes.ts';
import type { ComparedCheckouts } from '../lab/other-checkout.ts';
import { inTurns } from '../lab/rounds.ts';
import { storeAlone } from '../lab/store-alone.ts';
import { median, medianRatio, milliseconds, perSecond } from '../lab/statistics.ts';
import { postRequests, writingConnections as connections } from '../lab/writers.ts';

export const ingest: Bench = {
  name: 'ingest',
  asks: 'POST /traces with bodies of 1 KB on 64 connections, compared with a bare echo server and with the store alone',
  async run(lab) {
    const { rounds, seconds, warmUpSeconds } = lab.plan;
    const database = await lab.emptyDatabase('ingest');
    const requests = postRequests(lab, 'ingest', [database.key], smallPayloads);
    const echo = await startControl('echo-server.ts');
    const service = await startService(database.url);
    for (const { url } of [echo, service]) {
      await fire(url, requests, { connections, seconds: warmUpSeconds });
    }
    const { E, ours, D } = await inTurns(rounds, {
      E: () => fire(echo.url, requests, { connections, seconds }),
      ours: () => fire(service.url, requests, { connections, seconds }),
      D: async () => ({ perSecond: await storeAlone(lab.file('store-alone.db'), seconds) }),
    });
    await echo.stop();
    await service.stop();
    const compared = lab.compared === null ? [] : await beforeAndNow(lab, lab.compared);

    const rates = ours.map((load) => load.perSecond);
    const echoRates = E.map((load) => load.perSecond);
    const storeRates = D.map((load) => load.perSecond);
    const p99s = ours.map(({ p99Us }) => p99Us);
    const echoP99s = E.map(({ p99Us }) => p99Us);
    return [
      {
        bench: 'ingest',
        what: 'requests per second',
        value: medianRatio(rates, echoRates),
        unit: '× E',
        goal: { atLeast: 0.65 },
        detail: `${perSecond(rates)}; E ${perSecond(echoRates)}`,
      },
      {
        bench: 'ingest',
        what: 'p99 latency',
        value: median(p99s) / median(echoP99s),
        unit: '× E',
        goal: { atMost: 3 },
        detail: `${milliseconds(p99s)}; E ${milliseconds(echoP99s)}`,
      },
      {
        bench: 'ingest',
        what: 'rows per second compared with the store alone',
        value: medianRatio(rates, storeRates),
        unit: '× D',
        goal: null,
        detail: `D ${perSecond(storeRates)}`,
      },
      ...compared,
    ];
  },
};

/** The service of this checkout, or of another one, compared with that of a third. */
async function beforeAndNow(lab: Lab, { of, against }: ComparedCheckouts): Promise<Finding[]> {
  const bodies = traceBodies(1_000, smallPayloads);
  const { perSecond: rates, cpuUs } = await compareServices(lab, 'before-now', bodies, {
    ours: { checkout: of },
    control: { checkout: against },
  });
  return [
    {
      bench: 'ingest',
      what: 'requests per second compared with the other checkout',
      value: rates.ratio,
      unit: '× before',
      goal: { atLeast: 0.97 },
      detail: `${perSecond([rates.ours])}; before ${perSecond([rates.control])}; ${rates.spread}`,
    },
    {
      bench: 'ingest',
      what: 'CPU time per request compared with the other checkout',
      value: cpuUs.ratio,
      unit: '× before',
      goal: null,
      detail: cpuDetail(cpuUs, 'before'),
    },
  ];
}
