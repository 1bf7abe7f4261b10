import { formatTimestamp } from '../../core/clock.ts';
import type { PayloadName, TraceDraft } from '../../core/trace-fields.ts';
import type { TraceStamp } from '../../core/trace.ts';
import { traceJson } from '../trace-json.ts';

/** The JSON of traces for a reply, separated by commas. It was written before they were stored, with placeholders for their stamps. */
export interface ShownTraces {
  bytes: ArrayBuffer;
  /** Where the JSON of each trace ends. */
  ends: Uint32Array<ArrayBuffer>;
}

const placeholder: TraceStamp = { id: '00000000-0000-0000-0000-000000000000', createdAtUs: 0 };
const createdAtChars = formatTimestamp(0).length;
const idStart = '{"id":"'.length;
const closing = '"}'.length;

/** The JSON of a trace with placeholders. */
export function draftJson(
  draft: TraceDraft,
  teamId: string,
  omit: ReadonlySet<PayloadName>,
): string {
  return traceJson({ ...draft, ...placeholder, teamId }, omit);
}

export function shownTraces(pieces: readonly string[]): ShownTraces {
  const ends = new Uint32Array(pieces.length);
  let end = -1;
  for (const [i, piece] of pieces.entries()) {
    end += 1 + Buffer.byteLength(piece);
    ends[i] = end;
  }
  const bytes = new Uint8Array(Buffer.from(pieces.join(',')));
  return { bytes: bytes.buffer, ends };
}

/** Fills in what the store has assigned. */
export function stampShown({ bytes, ends }: ShownTraces, stamps: readonly TraceStamp[]): Buffer {
  const json = Buffer.from(bytes);
  let start = 0;
  for (const [i, { id, createdAtUs }] of stamps.entries()) {
    const end = ends[i] as number;
    json.write(id, start + idStart, 'latin1');
    json.write(formatTimestamp(createdAtUs), end - closing - createdAtChars, 'latin1');
    start = end + 1;
  }
  return json;
}
