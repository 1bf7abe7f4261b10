/** Records the calls of an Anthropic client: plain, and with the streaming helper. */
import Anthropic from '@anthropic-ai/sdk';
import { TraceTally } from '@tracetally/client';
import { anthropicProvider } from './fake-provider.ts';

const { baseURL, apiKey, stop } = await anthropicProvider();
const tally = new TraceTally();
const anthropic = tally.wrapAnthropic(new Anthropic({ baseURL, apiKey }), {
  feature: 'example-anthropic',
  user: 'user-17',
});

const question = {
  model: 'claude-opus-5-5',
  max_tokens: 100,
  messages: [{ role: 'user' as const, content: 'Say hello.' }],
};
const message = await anthropic.messages.create(question);
process.stdout.write(`${JSON.stringify(message.content)}\n`);

const stream = anthropic.messages.stream(question);
stream.on('text', (text) => void process.stdout.write(text));
await stream.finalMessage();
process.stdout.write('\n');

await tally.close();
await stop();
