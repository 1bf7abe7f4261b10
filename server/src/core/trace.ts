import { compile } from './compile.ts';
import { fieldNames, payloadNames } from './trace-fields.ts';
import type { PayloadName, TraceDraft, TraceInput } from './trace-fields.ts';

/** What the store assigns to a trace. */
export interface TraceStamp {
  id: string;
  createdAtUs: number;
}

/** A stored trace. */
export interface Trace extends TraceDraft, TraceStamp {
  teamId: string;
  /** Payloads whose stored bytes are damaged; they are null here. Absent if there are none. */
  damaged?: readonly PayloadName[];
}

type Undecided = Omit<TraceDraft, 'status'> & { status: TraceDraft['status'] | null };

const cleanFields = compile<(body: TraceInput) => Undecided>(
  `(body) => ({ ${fieldNames.map((name) => `${name}: clean(body.${name})`).join(', ')} })`,
  { clean },
);

export function draftTrace(body: TraceInput): TraceDraft {
  const draft = cleanFields(body);
  draft.status ??= draft.error_message ? 'error' : 'success';
  return draft as TraceDraft;
}

/**
 * Lone surrogates cannot be encoded as UTF-8. They are replaced with U+FFFD here, so that the reply shows what is stored. Adding zero
 * turns -0 into 0, which is what every store and JSON would return.
 */
function clean(value: string | number | null | undefined): string | number | null {
  if (typeof value === 'string') return value.toWellFormed();
  return typeof value === 'number' ? value + 0 : null;
}

/** The approximate memory that a draft uses while it waits. */
export function draftBytes(draft: TraceDraft): number {
  return fixedDraftBytes + payloadChars(draft);
}
const fixedDraftBytes = 512;

export const payloadChars = compile<(payloads: Pick<TraceDraft, PayloadName>) => number>(
  `(payloads) => ${payloadNames.map((name) => `(payloads.${name}?.length ?? 0)`).join(' + ')}`,
);
