/**
 * Joins pieces and cuts what comes into slices of about this size: at the end of a line where there is one near, else wherever it is
 * full, but never through a character.
 */
export function* slicesOf(
  pieces: Iterable<string>,
  firstChars: number,
  nextChars: number,
): Generator<string, void, undefined> {
  let waiting = '';
  let size = firstChars;
  for (const piece of pieces) {
    waiting += piece;
    let from = 0;
    while (waiting.length - from > size) {
      const end = cutAt(waiting, from, from + size);
      yield waiting.slice(from, end);
      from = end;
      size = nextChars;
    }
    if (from > 0) waiting = waiting.slice(from);
  }
  if (waiting !== '') yield waiting;
}

function cutAt(text: string, from: number, full: number): number {
  const line = text.lastIndexOf('\n', full - 1);
  if (line >= from + (full - from) / 2) return line + 1;
  const isInsidePair = /[\ud800-\udbff]/.test(text.charAt(full - 1));
  return isInsidePair && full - 1 > from ? full - 1 : full;
}
