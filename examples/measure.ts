/** Records a call that no wrapper knows: any function can be measured. */
import { TraceTally } from '@tracetally/client';

const tally = new TraceTally();

/** Stands for a model of your own. */
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
