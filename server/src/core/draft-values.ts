import { compile } from './compile.ts';
import { fieldNames, unusualNames, usualNames } from './trace-fields.ts';
import type { TraceDraft } from './trace-fields.ts';

/**
 * Values in a flat array, without names. When an object is sent to another thread, its property names are copied and looked up
 * again each time. For a trace of 1 KB that costs more than its text.
 */
export type Packed = readonly unknown[];

/** How many values a draft takes. */
export const draftValues = usualNames.length + 1;

/** The usual fields, then the others in an array; null if none of them is set, which is the case for most traces. */
export const packDraft = compile<(packed: unknown[], draft: TraceDraft) => void>(
  `(packed, draft) => packed.push(
    ${usualNames.map((name) => `draft.${name}`).join(', ')},
    ${unusualNames.map((name) => `draft.${name} === null`).join(' && ')}
      ? null
      : [${unusualNames.map((name) => `draft.${name}`).join(', ')}])`,
);

export const unpackDraft = compile<(packed: Packed, at: number) => TraceDraft>(
  `(packed, at) => {
    const others = packed[at + ${usualNames.length}];
    return others === null ? ${draftFrom(() => 'null')} : ${draftFrom((i) => `others[${i}]`)};
  }`,
);

/** An object with all fields, always in the same order, as source code. */
function draftFrom(unusual: (index: number) => string): string {
  const values = fieldNames.map((name) => {
    const at = usualNames.indexOf(name);
    return `${name}: ${at === -1 ? unusual(unusualNames.indexOf(name)) : `packed[at + ${at}]`}`;
  });
  return `({ ${values.join(', ')} })`;
}
