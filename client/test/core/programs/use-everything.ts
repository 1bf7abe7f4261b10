/**
 * Uses every method of two clients that get no options: `use-everything.ts PROVIDER_URL`. Prints what the calls returned and what the
 * provider was sent.
 */
import OpenAI from 'openai';
import { TraceTally, TraceTallyError } from '../../../src/index.ts';

const [providerUrl = ''] = process.argv.slice(2);
const tally = new TraceTally();
const second = new TraceTally();

const openai = tally.wrapOpenAI(
  new OpenAI({ apiKey: 'k', baseURL: `${providerUrl}/v1`, maxRetries: 0 }),
);
const messages = [{ role: 'user' as const, content: 'hi' }];
const completion = await openai.chat.completions.create({ model: 'gpt-4o', messages });
const failure = await openai.chat.completions
  .create({ model: 'gpt-4o', messages: [{ role: 'user', content: 'fail 400' }] })
  .catch((error: Error) => error.constructor.name);

const { messages: anthropic } = tally.wrapAnthropic({ messages: { create: () => 'message' } });
const middleware = tally.middleware();
const params = { prompt: 'hi' };
const model = { modelId: 'm', provider: 'p' };
const generated = await middleware.wrapGenerate({
  params,
  model,
  doGenerate: () => Promise.resolve('text'),
});
const stream = new ReadableStream();
const streamed = await middleware.wrapStream({
  params,
  model,
  doStream: () => Promise.resolve({ stream }),
});
const measured = await tally.measure({ model: 'm' }, async (set) => {
  set({ output: 'o', prompt_tokens: 1 });
  return 'measured';
});

tally.enqueue({ model: 'm' });
second.enqueue({ model: 'm' });
const recorded = await tally.record({ model: 'm' });
await tally.flush();
await tally.close();
tally.enqueue({ model: 'm' });

const codes = await Promise.all(
  [tally.traces.get('id'), tally.traces.list(), tally.analytics.overview()].map((read) =>
    read.then(
      () => 'read',
      (error: unknown) => (error instanceof TraceTallyError ? error.code : 'another error'),
    ),
  ),
);
process.stdout.write(
  JSON.stringify({
    completion: completion.choices[0]?.message.content,
    failure,
    anthropic: anthropic.create(),
    generated,
    isSameStream: streamed.stream === stream,
    measured,
    recorded,
    stats: tally.stats(),
    codes,
  }),
);
