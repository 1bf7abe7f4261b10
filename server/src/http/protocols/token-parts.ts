import { fieldNames, traceFields } from '../../core/trace-fields.ts';
import type { FieldName, TraceDraft } from '../../core/trace-fields.ts';
import { limits } from '../../limits.ts';
import { RejectedSignal } from './signal.ts';

interface Whole {
  name: FieldName;
  parts: readonly FieldName[];
}

/** The counts that have parts: first input tokens with cached ones, then output tokens with those for reasoning. */
const wholes: readonly Whole[] = [...new Set(fieldNames.map((name) => traceFields[name].partOf))]
  .filter((name) => name !== undefined)
  .map((name) => ({
    name: name as FieldName,
    parts: fieldNames.filter((part) => traceFields[part].partOf === name),
  }));

/**
 * In a trace, cached tokens are part of the input and reasoning tokens are part of the output. Some emitters report them separately: that
 * is known of an emitter, or shows if they are more than the whole, or if the total is only right with them.
 */
export function includeParts(
  draft: TraceDraft,
  total: number | null,
  separate: 'cached' | 'reasoning' | null,
): void {
  const counts: Partial<Record<FieldName, unknown>> = draft;
  const countOf = (name: FieldName): number => (counts[name] as number | null) ?? 0;
  const partsOf = ({ parts }: Whole): number => parts.reduce((sum, name) => sum + countOf(name), 0);
  const wholesSum = wholes.reduce((sum, { name }) => sum + countOf(name), 0);
  const missing = total === null ? 0 : total - wholesSum;
  const allParts = wholes.reduce((sum, whole) => sum + partsOf(whole), 0);
  for (const [i, whole] of wholes.entries()) {
    const parts = partsOf(whole);
    if (parts === 0 || counts[whole.name] === null) continue;
    const isSeparate =
      parts > countOf(whole.name) ||
      missing === parts ||
      missing === allParts ||
      separate === (i === 0 ? 'cached' : 'reasoning');
    if (!isSeparate) continue;
    const sum = countOf(whole.name) + parts;
    if (sum > limits.countMax) throw new RejectedSignal('its token counts are too large');
    counts[whole.name] = sum;
  }
}
