import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { demoTraces } from '../../server/src/cli/demo-data.ts';
import { extraNames, fieldNames } from '../../server/src/core/trace-fields.ts';

export interface PayloadSizes {
  inputChars: number;
  outputChars: number;
}

/** Makes bodies of about 1 KB. */
export const smallPayloads: PayloadSizes = { inputChars: 450, outputChars: 280 };
/** A long prompt and a long answer: about 40 KB. */
export const largePayloads: PayloadSizes = { inputChars: 20_000, outputChars: 20_000 };

/** Bodies of `POST /traces`, no two alike. */
export function traceBodies(count: number, { inputChars, outputChars }: PayloadSizes): string[] {
  const text = ordinaryText();
  const slice = (at: number, chars: number): string => {
    const start = (at * 7_919) % Math.max(1, text.length - chars);
    return text.slice(start, start + chars);
  };
  return Array.from(demoTraces(count, 7), (trace, i) =>
    JSON.stringify(
      { ...trace, input: slice(2 * i, inputChars), output: slice(2 * i + 1, outputChars) },
      measuredNames,
    ),
  );
}

/** Without the fields that came later, so that results stay comparable. */
const measuredNames = fieldNames.filter((name) => !extraNames.has(name));

/** English text and code from this project. Generated text would compress too well. */
function ordinaryText(): string {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  const files = ['docs', 'server/src', 'server/test'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(md|ts)$/.test(name))
      .map((name) => join(root, folder, name)),
  );
  return files
    .sort()
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n');
}
