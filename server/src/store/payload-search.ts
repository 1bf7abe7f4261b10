import { hasMetadataFilter, matchesMetadata } from '../core/query.ts';
import type { SearchCriteria } from '../core/query.ts';
import { payloadNames, traceFields } from '../core/trace-fields.ts';
import type { PayloadName } from '../core/trace-fields.ts';
import { hasText, metadataText, payloadsOfRow } from './payload.ts';

/** Checks the payloads of traces, the same for all stores. */
export interface PayloadSearch {
  /** The payloads that must be read. */
  names: readonly PayloadName[];
  /** Whether the payloads of a row match. A trace without payloads has an empty row. */
  matches(row: Readonly<Record<string, unknown>>): boolean;
}

export function payloadSearch(criteria: SearchCriteria): PayloadSearch {
  const hasMetadata = hasMetadataFilter(criteria);
  const text = criteria.text === null ? null : Buffer.from(criteria.text);
  return {
    names: payloadNames.filter((name) =>
      traceFields[name].kind === 'metadata' ? hasMetadata : text !== null,
    ),
    matches(row) {
      const packed = payloadsOfRow(row);
      // The text first: decoding metadata consumes its bytes.
      if (text !== null && !hasText(packed, text)) return false;
      if (!hasMetadata) return true;
      return matchesMetadata(criteria, metadataText(packed.metadata, packed.zstdMask));
    },
  };
}
