const quote = 0x22;
const backslash = 0x5c;
/** Every value follows one of these bytes, directly or after a field name, except the outermost one. */
const separators = new Uint8Array(256);
for (const sign of ',[{') separators[sign.charCodeAt(0)] = 1;

/**
 * Whether a JSON text has more than `valuesMax` values, not counting field names; an empty list or object counts as two. It scans the
 * bytes without parsing them: 20 MB can contain 7 million empty lists, which would take seconds and half a gigabyte to parse.
 */
export function hasMoreValues(json: Uint8Array, valuesMax: number): boolean {
  // The shortest value takes two bytes, including its separator.
  if (json.length <= 2 * valuesMax) return false;
  let values = 1;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at] as number;
    if (byte === quote) {
      at = endOfString(json, at);
      if (at === -1) return false;
    } else if (separators[byte] === 1) {
      values += 1;
      if (values > valuesMax) return true;
    }
  }
  return false;
}

/** The index of the quote that ends the string which begins at `start`; -1 if there is none. */
function endOfString(json: Uint8Array, start: number): number {
  let at = start;
  do {
    at = json.indexOf(quote, at + 1);
    if (at === -1) return -1;
  } while (isEscaped(json, at));
  return at;
}

/** Whether an odd number of backslashes precedes it. */
function isEscaped(json: Uint8Array, at: number): boolean {
  let before = at - 1;
  while (json[before] === backslash) before -= 1;
  return (at - 1 - before) % 2 === 1;
}
