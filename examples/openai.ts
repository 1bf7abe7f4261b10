/** Records the calls of an OpenAI client: plain, streamed, and with a user label. */
import { TraceTally } from '@tracetally/client';
import OpenAI from 'openai';
import { openAIProvider } from './fake-provider.ts';

const { baseURL, apiKey, stop } = await openAIProvider();
const tally = new TraceTally();
const openai = tally.wrapOpenAI(new OpenAI({ baseURL, apiKey }), { feature: 'example-openai' });

const completion = await openai.chat.completions.create({
  model: 'gpt-4o',
  messages: [{ role: 'user', content: 'Say hello.' }],
});
process.stdout.write(`${completion.choices[0]?.message.content ?? ''}\n`);

// Wrapping is cheap: wrap again for each request to set its user.
const forUser = tally.wrapOpenAI(openai, { user: 'user-17' });
const stream = await forUser.chat.completions.create({
  model: 'gpt-4o',
  messages: [{ role: 'user', content: 'Say hello, word by word.' }],
  stream: true,
});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? '');
process.stdout.write('\n');

await tally.close();
await stop();
