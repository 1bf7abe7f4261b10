/** Records the calls of the Vercel AI SDK: each step of `generateText` and `streamText`. */
import { createOpenAI } from '@ai-sdk/openai';
import { TraceTally } from '@tracetally/client';
import { generateText, streamText, wrapLanguageModel } from 'ai';
import { openAIProvider } from './fake-provider.ts';

const { stop, ...settings } = await openAIProvider();
const tally = new TraceTally();
const model = wrapLanguageModel({
  model: createOpenAI(settings).chat('gpt-4o'),
  middleware: tally.middleware({ feature: 'example-vercel-ai' }),
});

const { text } = await generateText({ model, prompt: 'Say hello.' });
process.stdout.write(`${text}\n`);

const { textStream } = streamText({ model, prompt: 'Say hello, word by word.' });
for await (const piece of textStream) process.stdout.write(piece);
process.stdout.write('\n');

await tally.close();
await stop();
