/** How much a JSON text may contain. */
export interface JsonBounds {
  /** Values, not counting field names; an empty list or object counts as two. */
  valuesMax: number;
  /** How deep lists and objects may be nested. */
  depthMax: number;
}

/** A JSON text that is over a bound. It was not parsed. */
export class JsonOverBounds extends Error {
  override readonly name = 'JsonOverBounds';
  readonly exceeded: keyof JsonBounds;

  constructor(exceeded: keyof JsonBounds, { valuesMax, depthMax }: JsonBounds) {
    super(
      exceeded === 'valuesMax'
        ? `contains more than ${valuesMax} JSON values`
        : `is nested deeper than ${depthMax} levels`,
    );
    this.exceeded = exceeded;
  }
}

/**
 * Parses a JSON text after a scan that bounds its values and depth. `JSON.parse` itself cannot be stopped: 20 MB can contain 7 million
 * empty lists, which take seconds and half a gigabyte, and can abort the process of a thread whose memory is limited.
 * Throws `JsonOverBounds`, or a `SyntaxError`.
 */
export function parseJson(text: string, bounds: JsonBounds): unknown {
  const exceeded = exceededBound(text, bounds);
  if (exceeded !== null) throw new JsonOverBounds(exceeded, bounds);
  return JSON.parse(text);
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
/** By the bits that `[` and `{` share, and `]` and `}`. */
const opening = 0x5b;
const closing = 0x5d;
const braceBit = 0x20;

/** Every value follows a comma or an opening bracket, directly or after a field name, except the outermost one. */
function exceededBound(text: string, { valuesMax, depthMax }: JsonBounds): keyof JsonBounds | null {
  // The shortest value takes two characters, including its separator.
  if (text.length <= 2 * valuesMax && text.length <= depthMax) return null;
  let values = 1;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      at = endOfString(text, at);
      if (at === -1) return null;
    } else if (code === comma) {
      if (++values > valuesMax) return 'valuesMax';
    } else if ((code & ~braceBit) === opening) {
      if (++values > valuesMax) return 'valuesMax';
      if (++depth > depthMax) return 'depthMax';
    } else if ((code & ~braceBit) === closing) depth -= 1;
  }
  return null;
}

/** The index of the quote that ends the string which begins at `start`; -1 if there is none. */
function endOfString(text: string, start: number): number {
  let at = start;
  do {
    at = text.indexOf('"', at + 1);
    if (at === -1) return -1;
  } while (isEscaped(text, at));
  return at;
}

/** Whether an odd number of backslashes precedes it. */
function isEscaped(text: string, at: number): boolean {
  let before = at - 1;
  while (text.charCodeAt(before) === backslash) before -= 1;
  return (at - 1 - before) % 2 === 1;
}
