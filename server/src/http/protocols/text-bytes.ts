import { payloadNames } from '../../core/trace-fields.ts';
import type { TraceDraft } from '../../core/trace-fields.ts';

/** How long the texts of a trace are together, in UTF-8. One trace may have as much as a body of `POST /traces`. */
export function textBytesOf(draft: TraceDraft): number {
  let bytes = 0;
  for (const name of payloadNames) bytes += Buffer.byteLength(draft[name] ?? '');
  return bytes;
}
