import { compile } from './compile.ts';
import { parseTimestamp } from './timestamp.ts';
import { fieldNames, payloadNames, traceFields } from './trace-fields.ts';
import type { FieldKind, PayloadName, TraceDraft, TraceInput } from './trace-fields.ts';

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

/** How the value of each kind of field is stored. Null if it was not sent. */
const stored: Record<FieldKind, (value: never) => string | number | null> = {
  label: cleanText,
  text: cleanText,
  status: cleanText,
  count: cleanNumber,
  dollars: cleanNumber,
  time: (text: Sent<string>) => (isSent(text) ? parseTimestamp(text) : null),
  // Only the service sets it.
  source: () => null,
  metadata: (entries: Sent<Metadata>) => (isSent(entries) ? metadataText(entries) : null),
};

const storedFields = compile<(body: TraceInput) => Undecided>(
  `(body) => ({ ${fieldNames.map((name) => `${name}: ${traceFields[name].kind}(body.${name})`).join(', ')} })`,
  stored,
);

export function draftTrace(body: TraceInput): TraceDraft {
  const draft = storedFields(body);
  draft.status ??= draft.error_message ? 'error' : 'success';
  return draft as TraceDraft;
}

type Sent<T> = T | null | undefined;
type Metadata = NonNullable<TraceInput['metadata']>;

function isSent<T>(value: Sent<T>): value is T {
  return value !== null && value !== undefined;
}

/** Lone surrogates cannot be encoded as UTF-8. They are replaced with U+FFFD here, so that the reply shows what is stored. */
function cleanText(text: Sent<string>): string | null {
  return isSent(text) ? text.toWellFormed() : null;
}

/** Adding zero turns -0 into 0, which is what every store and JSON would return. */
function cleanNumber(value: Sent<number>): number | null {
  return isSent(value) ? value + 0 : null;
}

/** As in the rest of a body, a `__proto__` key is dropped. */
function metadataText(entries: Metadata): string {
  const kept = Object.entries(entries).filter(([name]) => name !== '__proto__');
  return JSON.stringify(
    Object.fromEntries(kept.map(([name, value]) => [name, value.toWellFormed()])),
  );
}

/** The approximate memory that a draft uses while it waits. */
export function draftBytes(draft: TraceDraft): number {
  return fixedDraftBytes + payloadChars(draft);
}
const fixedDraftBytes = 512;

export const payloadChars = compile<(payloads: Pick<TraceDraft, PayloadName>) => number>(
  `(payloads) => ${payloadNames.map((name) => `(payloads.${name}?.length ?? 0)`).join(' + ')}`,
);
