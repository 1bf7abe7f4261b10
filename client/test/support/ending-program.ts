/** Run by a test in a process of its own: makes one recorded call, and ends without a word to the client. */
import { TraceTally } from '../../src/client.ts';

const answer = {
  model: 'gpt-4o',
  choices: [{ message: { content: 'Goodbye.' } }],
  usage: { prompt_tokens: 1000, completion_tokens: 100 },
};
const openai = { chat: { completions: { create: () => Promise.resolve(answer) } } };
await new TraceTally().wrapOpenAI(openai).chat.completions.create();
