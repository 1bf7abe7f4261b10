import { limits } from '../../limits.ts';

/** Replies in the two encodings of OTLP: an export response, or a google.rpc.Status. Both are small, so they are encoded by hand. */
export type Encoding = 'protobuf' | 'json';

export interface PartialSuccess {
  rejected: number;
  reason: string;
}

/** Which count of an export response says how many were rejected. */
const rejectedNames = {
  span: 'rejectedSpans',
  log: 'rejectedLogRecords',
  metric: 'rejectedDataPoints',
} as const;
export type SignalKind = keyof typeof rejectedNames;

/** On full success the message is empty. */
export function exportResponse(
  encoding: Encoding,
  kind: SignalKind,
  partial: PartialSuccess | null,
): Buffer | string {
  if (encoding === 'json') {
    if (partial === null) return '{}';
    const { rejected, reason } = partial;
    // 64-bit integers are texts in JSON.
    const partialSuccess = { [rejectedNames[kind]]: String(rejected), errorMessage: reason };
    return JSON.stringify({ partialSuccess });
  }
  if (partial === null) return Buffer.alloc(0);
  return message(1, Buffer.concat([integer(1, partial.rejected), text(2, partial.reason)]));
}

export function statusMessage(encoding: Encoding, status: number, reason: string): Buffer | string {
  const code = codes[status] ?? (status < 500 ? codes[400] : codes[500]) ?? 2;
  if (encoding === 'json') return JSON.stringify({ code, message: reason });
  return Buffer.concat([integer(1, code), text(2, reason)]);
}

/** The code of gRPC for each HTTP status. */
const codes: Readonly<Record<number, number>> = {
  400: 3,
  401: 16,
  403: 7,
  404: 5,
  429: 8,
  500: 13,
  503: 14,
};

/** `3 of 100 spans were rejected: it does not say which model was called (3)`. */
export function rejectionText(
  kind: SignalKind,
  total: number,
  rejected: number,
  reasons: readonly (readonly [reason: string, count: number])[],
): string {
  const nouns = { span: 'spans', log: 'log records', metric: 'metrics' };
  const shown = reasons.slice(0, limits.otlpReasonsMax);
  const list = shown.map(([reason, count]) => `${reason} (${count})`).join('; ');
  return `${rejected} of ${total} ${nouns[kind]} were rejected: ${list}`;
}

const bytesType = 2;

function integer(field: number, value: number): Buffer {
  return Buffer.from([field << 3, ...varint(value)]);
}

function text(field: number, value: string): Buffer {
  return message(field, Buffer.from(value));
}

function message(field: number, content: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from([(field << 3) | bytesType, ...varint(content.length)]),
    content,
  ]);
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 0x80; left = Math.floor(left / 0x80)) bytes.push((left % 0x80) | 0x80);
  return [...bytes, left];
}
