/** Run by a test as a process: makes one recorded call, and ends without `flush` or `close`. */
import { TraceTally } from '../../src/client.ts';

const answer = {
  model: 'gpt-4o',
  choices: [{ message: { content: 'Goodbye.' } }],
  usage: { prompt_tokens: 1000, completion_tokens: 100 },
};
const openai = { chat: { completions: { create: () => Promise.resolve(answer) } } };
await new TraceTally({ closeTimeoutMs: 30_000 }).wrapOpenAI(openai).chat.completions.create();
