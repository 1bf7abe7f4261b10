import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import {
  chatAttributes,
  encode,
  message,
  spanOf,
  spansRequest,
} from '../../server/test/support/otlp.ts';
import type { Bench, Finding } from '../lab/bench.ts';
import { smallPayloads, traceBodies } from '../lab/bodies.ts';
import { flood, listAnswers } from '../lab/flood.ts';
import type { FloodRequest } from '../lab/flood.ts';
import type { Lab } from '../lab/lab.ts';
import { startPaced } from '../lab/paced.ts';
import { makeKey, startService } from '../lab/processes.ts';

const writesPerSecond = 200;
const connections = 8;
const secondsFactor = 5;

export const fairness: Bench = {
  name: 'fairness',
  asks: 'one team writes 200 traces per second while another floods the service with large requests, compared with no flood',
  async run(lab) {
    const findings = await measure(lab, null);
    if (lab.compared === null) return findings;
    const before = await measure(lab, lab.compared.against);
    return [
      ...findings,
      ...before.map((finding) => ({ ...finding, what: `before: ${finding.what}`, goal: null })),
    ];
  },
};

async function measure(lab: Lab, checkout: string | null): Promise<Finding[]> {
  const database = await lab.emptyDatabase(
    `fairness${checkout === null ? '' : '-before'}`,
    checkout,
  );
  const honest = await makeKey(database.url, 'honest', checkout);
  const service = await startService(database.url, checkout);
  const seconds = secondsFactor * lab.plan.seconds;
  const floods = Object.entries(floodRequests());
  const total = (floods.length + 2) * (seconds + 10) + 60;
  const paced = startPaced(service.url, honest, { perSecond: writesPerSecond, seconds: total });
  await sleep(lab.plan.warmUpSeconds * 1_000);
  const window = async (): Promise<ReturnType<typeof paced.view>> => {
    const fromMs = Date.now();
    await sleep(seconds * 1_000);
    return paced.view([fromMs, Date.now() - 500]);
  };
  const idle = await window();
  const findings: Finding[] = [];
  for (const [what, request] of floods) {
    const untilMs = Date.now() + (seconds + 1) * 1_000;
    const running = flood(service.url, database.key, request, { connections, untilMs });
    await sleep(1_000);
    const view = await window();
    const answers = await running;
    await sleep(2_000);
    findings.push({
      bench: 'fairness',
      what: `median write beside ${what}`,
      value: view.p50Ms / idle.p50Ms,
      unit: '× idle',
      goal: { atMost: 5 },
      detail:
        `p50 ${view.p50Ms.toFixed(1)} ms, p99 ${view.p99Ms.toFixed(1)} ms, slowest ${view.slowestMs.toFixed(0)} ms, ` +
        `${view.failed} of ${view.writes} failed; idle p50 ${idle.p50Ms.toFixed(1)} ms, p99 ${idle.p99Ms.toFixed(1)} ms; ` +
        `the flood got ${listAnswers(answers)}`,
    });
  }
  await paced.stop();
  await service.stop();
  return findings;
}

function floodRequests(): Readonly<Record<string, FloodRequest>> {
  const traces = traceBodies(1_000, smallPayloads);
  const json = { 'content-type': 'application/json' };
  const protobuf = { 'content-type': 'application/x-protobuf' };
  const spans = Array.from({ length: 1_000 }, () =>
    spanOf({
      attributes: chatAttributes({ 'gen_ai.input.messages': 'A question. '.repeat(40) }),
    }),
  );
  const emptySpans = message(1, [message(2, [Buffer.alloc(80_000, Buffer.from([0x12, 0]))])]);
  return {
    'OTLP requests of 1,000 calls': {
      path: '/v1/traces',
      headers: protobuf,
      body: encode('protobuf', spansRequest(spans)),
    },
    'writes of 4 MB': {
      path: '/traces',
      headers: json,
      body: Buffer.from(
        JSON.stringify({ model: 'm', input: traces.join('').repeat(8).slice(0, 4e6) }),
      ),
    },
    'batches of 1,000': {
      path: '/traces/batch',
      headers: json,
      body: Buffer.from(`{"traces":[${traces.join()}]}`),
    },
    '40,000 empty spans': {
      path: '/v1/traces',
      headers: { ...protobuf, 'content-encoding': 'gzip' },
      body: gzipSync(emptySpans),
    },
  };
}
