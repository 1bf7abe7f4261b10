/**
 * Asks the store the questions that have no endpoint of their own yet, and measures how long each answer takes. Arguments: a SQLite
 * file, and how often to ask. Prints the median milliseconds of each question.
 */
import { calendarOf } from '../../server/src/core/calendar.ts';
import { percentile } from '../../server/src/core/latency-histogram.ts';
import { openStore } from '../../server/src/store/open-store.ts';
import { median } from './statistics.ts';

const [, , path = '', asked = '1'] = process.argv;
const times = Number(asked);
const store = await openStore(
  { kind: 'sqlite', path },
  { clock: { kind: 'system' }, role: 'tool', rolling: 'manual', mustExist: true },
);
const [team] = await store.teams(0);
if (!team) throw new Error('the database has no teams');
const calendar = calendarOf(await store.timeZone(team.id));
const today = calendar.dayOf(Date.now() * 1000);

/**
 * By model over this many days, as /analytics/by-model, or with percentiles. Each time the range ends on another day, so that no answer is
 * cached.
 */
async function byModel(days: number, hasPercentiles: boolean, count: number): Promise<number> {
  const tookMs: number[] = [];
  for (let i = 0; i < count; i++) {
    const endDay = today + 1 - i;
    const range = {
      fromUs: calendar.startOfDay(endDay - days),
      toUs: calendar.startOfDay(endDay),
    };
    const startMs = performance.now();
    const { first, rest } = await store.tallies(team?.id ?? '', {
      filter: {},
      groupBy: ['model'],
      range,
      interval: null,
      sumsOnly: !hasPercentiles,
    });
    const tallies = [...first];
    for await (const chunk of rest ?? []) tallies.push(...chunk);
    const latencies = tallies.map(({ measures }) => percentile(measures.latencies, 95));
    tookMs.push(performance.now() - startMs);
    if (latencies.length === 0) throw new Error('there is nothing in the range');
  }
  return median(tookMs);
}

/** The later of many years would have little in them. */
const yearTimes = Math.ceil(times / 3);
// Other ranges than those that are measured.
await byModel(29, false, times);
await byModel(29, true, yearTimes);
const monthMs = await byModel(30, false, times);
const yearMs = await byModel(365, true, yearTimes);
await store.close();
process.stdout.write(`${JSON.stringify({ monthMs, yearMs })}\n`);
