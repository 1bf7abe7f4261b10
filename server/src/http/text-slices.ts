/** A text in pieces of about so many characters. A surrogate pair stays together: half of one cannot be written as UTF-8. */
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
