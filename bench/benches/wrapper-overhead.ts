import OpenAI from 'openai';
import { wrapOpenAI } from '../../client/src/wrap-openai.ts';
import { startFakeOpenAI } from '../../client/test/support/fake-openai.ts';
import type { Bench, Finding } from '../lab/bench.ts';
import { median } from '../lab/statistics.ts';

const question = {
  model: 'gpt-4o',
  messages: [{ role: 'user' as const, content: 'hi '.repeat(300) }],
};

type Ask = (openai: OpenAI) => Promise<unknown>;

const asks: Readonly<Record<'plain' | 'streamed', Ask>> = {
  plain: (openai) => openai.chat.completions.create(question),
  async streamed(openai) {
    for await (const _ of await openai.chat.completions.create({ ...question, stream: true }));
  },
};

export const wrapperOverhead: Bench = {
  name: 'wrapper-overhead',
  asks: 'time that recording adds to a call of the OpenAI client; a fake provider in the same process replies immediately',
  async run(lab) {
    const fake = await startFakeOpenAI();
    const bare = new OpenAI({ apiKey: 'none', baseURL: `${fake.url}/v1`, maxRetries: 0 });
    let recorded = 0;
    const recorder = { enqueue: () => void (recorded += 1), report() {}, reportOnce() {} };
    const wrapped = wrapOpenAI(recorder, bare, { feature: 'bench' });
    try {
      const findings: Finding[] = [];
      for (const [kind, ask] of Object.entries(asks)) {
        await inTurnsFor(lab.plan.warmUpSeconds, ask, bare, wrapped);
        const rounds: { bare: number; ours: number }[] = [];
        for (let round = 0; round < lab.plan.rounds; round++) {
          rounds.push(await inTurnsFor(lab.plan.seconds, ask, bare, wrapped));
          fake.requests.length = 0;
        }
        const bareUs = median(rounds.map((round) => round.bare));
        const oursUs = median(rounds.map((round) => round.ours));
        findings.push({
          bench: 'wrapper-overhead',
          what: `time that recording adds to a ${kind} call`,
          value: median(rounds.map((round) => round.ours - round.bare)),
          unit: 'µs',
          goal: null,
          detail: `${Math.round(oursUs)} µs per call; without recording ${Math.round(bareUs)} µs`,
        });
      }

      if (recorded === 0) throw new Error('the wrapped client recorded nothing');
      return findings;
    } finally {
      await fake.stop();
    }
  },
};

/** Median times of a call in µs. The two clients alternate call by call, because the difference is far smaller than the noise of the machine. */
async function inTurnsFor(
  seconds: number,
  ask: Ask,
  bare: OpenAI,
  wrapped: OpenAI,
): Promise<{ bare: number; ours: number }> {
  const endMs = performance.now() + seconds * 1000;
  const times: [number[], number[]] = [[], []];
  while (performance.now() < endMs) {
    times[0].push(await microsOf(() => ask(bare)));
    times[1].push(await microsOf(() => ask(wrapped)));
  }
  return { bare: median(times[0]), ours: median(times[1]) };
}

async function microsOf(call: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await call();
  return (performance.now() - startMs) * 1000;
}
