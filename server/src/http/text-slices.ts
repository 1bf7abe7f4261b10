/** Splits a text into slices of about `chars` characters. Surrogate pairs are kept together, since half a pair is not valid UTF-8. */
export function* slicesOf(text: string, chars: number): Generator<string> {
  for (let at = 0; at < text.length;) {
    let end = at + chars;
    if (isHighSurrogate(text.charCodeAt(end - 1))) end += 1;
    yield text.slice(at, end);
    at = end;
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

/** Splits bytes into slices of about this size. Small pieces are joined. */
export function* byteSlices(pieces: Iterable<Buffer>, bytes: number): Generator<Buffer> {
  let joined: Buffer[] = [];
  let length = 0;
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += bytes) {
      const slice = piece.subarray(at, at + bytes);
      joined.push(slice);
      length += slice.length;
      if (length < bytes) continue;
      yield joined.length === 1 ? slice : Buffer.concat(joined, length);
      joined = [];
      length = 0;
    }
  }
  if (length > 0) yield Buffer.concat(joined, length);
}
