import type { Bench, Finding } from '../lab/bench.ts';
import type { Lab } from '../lab/lab.ts';
import { startService, tracetally } from '../lab/processes.ts';
import type { Running } from '../lab/processes.ts';
import { copyUncosted } from '../lab/uncosted.ts';

const bench = 'reprice';

/** Every trace has the same tokens and gets the same price, so at any moment the total is the number of calls with a cost times this. */
const costPicos = 3_000_000_000n;
const modelPrice = ['--input', '2', '--output', '10'];

export const reprice: Bench = {
  name: bench,
  asks: 'the costs of 1 M traces computed again beside writes, while every read is exact',
  run: repriceBesideWrites,
};

async function repriceBesideWrites(lab: Lab): Promise<Finding[]> {
  const traces = lab.plan.middle;
  const path = lab.file('uncosted.db');
  const key = await copyUncosted(lab, path, traces);
  const url = `sqlite:${path}`;
  for (let model = 0; model < 12; model++) {
    await tracetally(url, ['prices', 'set', `model-${model}`, ...modelPrice]);
  }
  const service = await startService(url);
  const beside = besideLoad(service, key);
  const day = new Date(Date.now() - 40 * 86_400_000).toISOString().slice(0, 10);
  const result = await tracetally(url, ['reprice', '--from', day]);
  const { reads, writes, slowestMs } = await beside.stop();
  await service.stop();
  const { ok } = await tracetally(url, ['verify']);
  const [team] = result['teams'] as { changed: number }[];
  if (team?.changed !== traces || ok !== true) throw new Error('not every cost was computed');
  const seconds = Number(result['seconds']);
  return [
    {
      bench,
      what: 'traces repriced per second beside writes',
      value: Math.round(traces / seconds),
      unit: 'per second',
      goal: null,
      detail: `${traces} traces in ${seconds} s; ${reads} exact reads and ${writes} writes meanwhile, the slowest write ${slowestMs.toFixed(0)} ms`,
    },
  ];
}

/** Writes and reads one after the other until it is stopped. Every total must be exact. */
function besideLoad({ url }: Running, key: string) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ model: 'model-1', cost_usd: Number(costPicos) / 1e12 });
  let isStopped = false;
  let [reads, writes, slowestMs] = [0, 0, 0];

  async function write(): Promise<void> {
    while (!isStopped) {
      const startMs = performance.now();
      const reply = await fetch(`${url}/traces`, { method: 'POST', headers, body });
      await reply.text();
      if (reply.status !== 201) throw new Error(`POST /traces: ${reply.status}`);
      writes += 1;
      slowestMs = Math.max(slowestMs, performance.now() - startMs);
    }
  }

  async function read(): Promise<void> {
    while (!isStopped) {
      const reply = await fetch(`${url}/analytics/query?group_by=model`, { headers });
      const text = await reply.text();
      if (reply.status !== 200) throw new Error(`GET /analytics/query: ${reply.status}`);
      const totals = text.slice(text.lastIndexOf('"totals"'));
      const number = (name: string) => new RegExp(`"${name}":([0-9.]+)`).exec(totals)?.[1] ?? '';
      const costed = BigInt(number('call_count')) - BigInt(number('uncosted_calls'));
      const [whole = '', fraction = ''] = number('total_cost_usd').split('.');
      if (BigInt(whole + fraction.padEnd(12, '0')) !== costed * costPicos) {
        throw new Error(`the total is not exact: ${totals}`);
      }
      reads += 1;
    }
  }

  const loads = Promise.all([write(), read()]);
  // It is awaited at the end; until then a rejection must not count as unhandled.
  loads.catch(() => {});
  return {
    async stop() {
      isStopped = true;
      await loads;
      return { reads, writes, slowestMs };
    },
  };
}
