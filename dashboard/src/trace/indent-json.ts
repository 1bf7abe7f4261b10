import { declaredFile, fileIn, placeholder, typeFields, withoutFiles } from './embedded-file.ts';

/** Deeper levels get no lines of their own, or a few kilobytes of brackets would become gigabytes of spaces. */
const indentedDepthMax = 24;

/**
 * Breaks JSON into lines, piece by piece, so that the first lines are available before the last ones are read. Numbers keep all their
 * digits and keys their order; only white space changes, and files become placeholders. The text must be valid JSON.
 */
export function* indentJson(text: string): Generator<string, void, undefined> {
  let depth = 0;
  let at = 0;
  /** The last string, the field that the next value belongs to, and the media type that its object has declared; as in the JSON. */
  let last = '';
  let field = '';
  let type = '';
  while (at < text.length) {
    if (isSpace(text.charCodeAt(at))) {
      at = skipSpace(text, at);
      continue;
    }
    const sign = text.charAt(at);
    switch (sign) {
      case '{':
      case '[': {
        [field, type] = ['', ''];
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
        [field, type] = ['', ''];
        yield lineBreak(depth, depth - 1) + sign;
        depth -= 1;
        at += 1;
        break;
      case ',':
        field = '';
        yield sign + lineBreak(depth, depth);
        at += 1;
        break;
      case ':':
        field = last;
        yield ': ';
        at += 1;
        break;
      default: {
        const end = sign === '"' ? stringEnd(text, at) : wordEnd(text, at);
        last = text.slice(at, end).trimEnd();
        yield sign === '"' ? shownString(last, field, type) : last;
        if (isTypeField(field)) type = last;
        at = end;
      }
    }
  }
}

/** Strings up to this length are shown as they are, without looking for files in them. */
const plainCharsMax = 24;

/** A string as JSON. Its field and media type are also given as JSON. */
function shownString(json: string, field: string, type: string): string {
  const isData = field === '"data"' && type !== '';
  if (json.length <= plainCharsMax && !isData) return json;
  const value = JSON.parse(json) as string;
  const file = isData ? declaredFile(value, JSON.parse(type)) : null;
  const shown = file === null ? withoutFiles(value) : placeholder(file);
  return shown === value ? json : JSON.stringify(shown);
}

function isTypeField(field: string): boolean {
  return field !== '' && typeFields.includes(field.slice(1, -1));
}

/**
 * The same for a parsed value. The depth is bounded, since the call stack is: anything nested deeper is left out, and the text says
 * so.
 */
export function* indentValue(value: unknown, depth = 0): Generator<string, void, undefined> {
  if (typeof value !== 'object' || value === null) {
    yield JSON.stringify(typeof value === 'string' ? withoutFiles(value) : value);
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
    const file = name === 'data' ? fileIn(value as Record<string, unknown>) : null;
    yield* file === null ? indentValue(item, depth + 1) : [JSON.stringify(placeholder(file))];
  }
  yield lineBreak(depth + 1, depth) + closing(sign);
}

/** Inside a container at this depth. */
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

/** The position after the closing quote, which is the first one with an even number of backslashes before it. */
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

/** The position after a number or a word such as `true`, and after the white space that follows it. */
function wordEnd(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && !'{}[],:"'.includes(text.charAt(at))) at += 1;
  return at;
}
