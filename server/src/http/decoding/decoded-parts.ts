import { deserialize, serialize } from 'node:v8';
import { draftValues, packDraft, unpackDraft } from '../../core/draft-values.ts';
import { payloadNames } from '../../core/trace-fields.ts';
import type { PayloadName, TraceDraft } from '../../core/trace-fields.ts';
import { fail } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { blobBytes, blobOf } from '../../store/payload-blob.ts';
import { packPayloads, packedBytes } from '../../store/payload.ts';
import type { PackedPayloads } from '../../store/payload.ts';
import type { CallIds } from '../../store/trace-writer.ts';
import type { DecodedPart, PartValues } from './decode-job.ts';
import { draftJson, shownTraces } from './shown-traces.ts';

/** A decoded request is read and stored in parts, so that neither holds up other requests. */
export const partRowsMax = 128;
const partBytesMax = 512 * 1024;
const partReportsMax = 4 * partRowsMax;
/** Larger writes would never find room in the queue. */
const decodedBytesMax = limits.queueBytesMax / 2;

/**
 * Packs the payloads of drafts, and serializes the drafts in parts of bounded size. The drafts lose their payloads. With `show`, each
 * trace also becomes JSON for the reply.
 */
export function partsOf(
  drafts: readonly TraceDraft[],
  calls: readonly (readonly CallIds[])[] | null,
  show: { teamId: string; omit: ReadonlySet<PayloadName> } | null,
): DecodedPart[] {
  const parts: DecodedPart[] = [];
  let first = 0;
  let payloads: PackedPayloads[] = [];
  let shown: string[] = [];
  let bytes = 0;
  let reports = 0;
  let allBytes = 0;
  const flush = (end: number): void => {
    const part = partOf(drafts.slice(first, end), payloads, calls?.slice(first, end) ?? null);
    parts.push({ ...part, shown: show && shownTraces(shown) });
    allBytes += part.values.byteLength + blobBytes(part.payloads);
    // The labels of a resource are repeated in each of its calls.
    if (allBytes > decodedBytesMax) {
      fail('body_too_large', {
        say: `The traces in this request take more than ${decodedBytesMax} bytes.`,
      });
    }
    [first, payloads, shown, bytes, reports] = [end, [], [], 0, 0];
  };
  for (const [i, draft] of drafts.entries()) {
    if (show) shown.push(draftJson(draft, show.teamId, show.omit));
    const packed = packPayloads(draft);
    for (const name of payloadNames) draft[name] = null;
    payloads.push(packed);
    bytes += packedBytes(packed) + (shown.at(-1)?.length ?? 0);
    reports += calls?.[i]?.length ?? 0;
    const isFull =
      payloads.length >= partRowsMax || bytes >= partBytesMax || reports >= partReportsMax;
    if (isFull || i + 1 === drafts.length) flush(i + 1);
  }
  return parts;
}

function partOf(
  drafts: readonly TraceDraft[],
  payloads: readonly PackedPayloads[],
  calls: PartValues['calls'],
): Omit<DecodedPart, 'shown'> {
  const values: unknown[] = [];
  for (const draft of drafts) packDraft(values, draft);
  const part: PartValues = { drafts: values, calls };
  // Copied, so that it is a buffer of its own, which can be handed to another thread.
  return {
    rows: drafts.length,
    values: new Uint8Array(serialize(part)),
    payloads: blobOf(payloads),
  };
}

/** What a part contains. */
export interface ReadPart {
  drafts: TraceDraft[];
  calls: PartValues['calls'];
}

export function readPart({ values }: DecodedPart): ReadPart {
  const { drafts: packed, calls } = deserialize(values) as PartValues;
  const drafts: TraceDraft[] = [];
  for (let at = 0; at < packed.length; at += draftValues) drafts.push(unpackDraft(packed, at));
  return { drafts, calls };
}

/** The memory that a part uses. */
export function partBytes({ values, payloads, shown }: DecodedPart): number {
  return values.byteLength + blobBytes(payloads) + (shown?.bytes.byteLength ?? 0);
}
