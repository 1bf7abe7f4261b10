/** Records a call for which there is no wrapper. */
import { TraceTally } from '@tracetally/client';

const tally = new TraceTally();

/** Stands in for your own model. */
async function classify(text: string): Promise<{ label: string; tokens: number }> {
  await new Promise((resolve) => {
    setTimeout(resolve, 20);
  });
  return { label: text.includes('!') ? 'glad' : 'calm', tokens: text.length };
}

const input = 'What a day!';
const call = { model: 'my-classifier', feature: 'example-measure', input };
const label = await tally.measure(call, async (set) => {
  const result = await classify(input);
  set({ output: result.label, prompt_tokens: result.tokens, cost_usd: 0.000012 });
  return result.label;
});
process.stdout.write(`${label}\n`);

await tally.close();
