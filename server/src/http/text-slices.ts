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
