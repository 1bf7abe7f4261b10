/** Browsers need quadratic time to draw one letter with very many marks: seconds for 20,000. */
const marksMax = 1_000;

/**
 * Joins pieces and cuts them into slices of at most this size: at the end of a nearby line if there is one, otherwise at the size limit,
 * but never inside a character. A letter with too many marks to be readable is cut as well.
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
      yield* cutMarks(waiting.slice(from, end));
      from = end;
      size = nextChars;
    }
    if (from > 0) waiting = waiting.slice(from);
  }
  yield* cutMarks(waiting);
}

function* cutMarks(slice: string): Generator<string, void, undefined> {
  let from = 0;
  for (const { index, 0: marks } of slice.matchAll(/\p{M}+/gu)) {
    for (let left = marks.length; left > marksMax; left -= marksMax) {
      const end = wholeCharacters(slice, from, index + marks.length - left + marksMax);
      yield slice.slice(from, end);
      from = end;
    }
  }
  if (from < slice.length) yield slice.slice(from);
}

function cutAt(text: string, from: number, full: number): number {
  const line = text.lastIndexOf('\n', full - 1);
  if (line >= from + (full - from) / 2) return line + 1;
  return wholeCharacters(text, from, full);
}

/** The same place, or the one before if it is inside of a surrogate pair. */
function wholeCharacters(text: string, from: number, end: number): number {
  const isInsidePair = /[\ud800-\udbff]/.test(text.charAt(end - 1));
  return isInsidePair && end - 1 > from ? end - 1 : end;
}
