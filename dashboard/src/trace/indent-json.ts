/** Deeper levels get no lines of their own, or a few kilobytes of brackets would become gigabytes of spaces. */
const indentedDepthMax = 24;

/**
 * Breaks JSON into lines, piece by piece, so that the first lines are there before the last ones are looked at. It moves only white
 * space: numbers keep all their digits and keys their order. The text must be valid JSON.
 */
export function* indentJson(text: string): Generator<string, void, undefined> {
  let depth = 0;
  let at = 0;
  while (at < text.length) {
    if (isSpace(text.charCodeAt(at))) {
      at = skipSpace(text, at);
      continue;
    }
    const sign = text.charAt(at);
    switch (sign) {
      case '{':
      case '[': {
        const next = skipSpace(text, at + 1);
        if (text.charAt(next) === closing(sign)) {
          yield sign + closing(sign);
          at = next + 1;
        } else {
          depth += 1;
          yield sign + lineBreak(depth, depth);
          at = next;
        }
        break;
      }
      case '}':
      case ']':
        yield lineBreak(depth, depth - 1) + sign;
        depth -= 1;
        at += 1;
        break;
      case ',':
        yield sign + lineBreak(depth, depth);
        at += 1;
        break;
      case ':':
        yield ': ';
        at += 1;
        break;
      default: {
        const end = sign === '"' ? stringEnd(text, at) : wordEnd(text, at);
        yield text.slice(at, end).trimEnd();
        at = end;
      }
    }
  }
}

/**
 * The same for a value that was parsed. Its depth is bounded, since the call stack is: what is nested deeper is left out, and the text
 * says so.
 */
export function* indentValue(value: unknown, depth = 0): Generator<string, void, undefined> {
  if (typeof value !== 'object' || value === null) {
    yield JSON.stringify(value);
    return;
  }
  const names = Array.isArray(value) ? null : Object.keys(value);
  const items = names === null ? (value as readonly unknown[]) : null;
  const count = names?.length ?? items?.length ?? 0;
  const sign = names === null ? '[' : '{';
  if (count === 0 || depth >= indentedDepthMax) {
    yield sign + (count === 0 ? '' : ' … nested deeper, see Raw ') + closing(sign);
    return;
  }
  for (let at = 0; at < count; at += 1) {
    const name = names?.[at];
    yield (at === 0 ? sign : ',') + lineBreak(depth + 1, depth + 1);
    if (name !== undefined) yield `${JSON.stringify(name)}: `;
    const item = name === undefined ? items?.[at] : (value as Record<string, unknown>)[name];
    yield* indentValue(item, depth + 1);
  }
  yield lineBreak(depth + 1, depth) + closing(sign);
}

/** Inside of a container at this depth. */
function lineBreak(depth: number, indent: number): string {
  return depth > indentedDepthMax ? '' : `\n${'  '.repeat(indent)}`;
}

function closing(sign: string): string {
  return sign === '{' ? '}' : ']';
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (isSpace(text.charCodeAt(at))) at += 1;
  return at;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

/** Behind the quote that closes the string, which is one with an even number of backslashes before it. */
function stringEnd(text: string, start: number): number {
  let at = start;
  for (;;) {
    at = text.indexOf('"', at + 1);
    if (at === -1) return text.length;
    let slashes = 0;
    while (text.charCodeAt(at - 1 - slashes) === 0x5c) slashes += 1;
    if (slashes % 2 === 0) return at + 1;
  }
}

/** Behind a number, a word such as `true`, or the white space before the next sign. */
function wordEnd(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && !'{}[],:"'.includes(text.charAt(at))) at += 1;
  return at;
}
