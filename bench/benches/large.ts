import { statSync } from 'node:fs';
import type { Bench } from '../lab/bench.ts';
import { largePayloads } from '../lab/bodies.ts';
import { fire } from '../lab/load.ts';
import { startControl, startService, tracetally } from '../lab/processes.ts';
import { inTurns } from '../lab/rounds.ts';
import { medianRatio, perSecond } from '../lab/statistics.ts';
import { postRequests, writingConnections as connections } from '../lab/writers.ts';

export const large: Bench = {
  name: 'large',
  asks: 'POST /traces with prompts and answers of 20 KB each',
  async run(lab) {
    const { rounds, seconds, warmUpSeconds } = lab.plan;
    const database = await lab.emptyDatabase('large');
    const requests = postRequests(lab, 'large', [database.key], largePayloads);
    const echo = await startControl('echo-server.ts');
    const service = await startService(database.url);
    for (const { url } of [echo, service]) {
      await fire(url, requests, { connections, seconds: warmUpSeconds });
    }
    const { E, ours } = await inTurns(rounds, {
      E: () => fire(echo.url, requests, { connections, seconds }),
      ours: () => fire(service.url, requests, { connections, seconds }),
    });
    await echo.stop();
    await service.stop();

    const rates = ours.map((load) => load.perSecond);
    const echoRates = E.map((load) => load.perSecond);
    const bytesOnDisk = statSync(database.path).size / (await storedTraces(database.url));
    return [
      {
        bench: 'large',
        what: 'requests per second',
        value: medianRatio(rates, echoRates),
        unit: '× E',
        goal: { atLeast: 0.6 },
        detail: `${perSecond(rates)}; E ${perSecond(echoRates)}`,
      },
      {
        bench: 'large',
        what: 'bytes on disk',
        value: bytesOnDisk / requests.bytesMean,
        unit: '× the JSON sent',
        goal: { atMost: 0.5 },
        detail: `${Math.round(bytesOnDisk)} of ${Math.round(requests.bytesMean)} bytes per trace`,
      },
    ];
  },
};

async function storedTraces(url: string): Promise<number> {
  const teams = (await tracetally(url, ['teams', 'list'])) as unknown as { traces: number }[];
  return teams.reduce((sum, { traces }) => sum + traces, 0);
}
