const quote = 0x22;
const backslash = 0x5c;
/** Every value but the first of a list or an object comes behind one of these. */
const separators = new Uint8Array(256);
for (const sign of ',[{') separators[sign.charCodeAt(0)] = 1;

/**
 * Whether a JSON text has more values than the bound, names of fields not counted. It reads the bytes once and builds nothing:
 * a text of 20 MB may hold 7 million empty lists, which would take seconds and half a gigabyte to parse. Each list and object may
 * count one too many.
 */
export function hasMoreValues(json: Uint8Array, valuesMax: number): boolean {
  // The shortest value takes two bytes, with what separates it from the next.
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

/** Where the string ends that begins at `start`; -1 if it does not end. */
function endOfString(json: Uint8Array, start: number): number {
  let at = start;
  do {
    at = json.indexOf(quote, at + 1);
    if (at === -1) return -1;
  } while (isEscaped(json, at));
  return at;
}

/** An odd number of backslashes stands before it. */
function isEscaped(json: Uint8Array, at: number): boolean {
  let before = at - 1;
  while (json[before] === backslash) before -= 1;
  return (at - 1 - before) % 2 === 1;
}
