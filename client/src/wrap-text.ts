/**
 * The server accepts traces of up to 5 MiB. Input and output of this length stay below it in any common script. A trace with cut text is
 * better than a rejected one.
 */
const textCharsMax = 800_000;
const errorCharsMax = 10_000;
const causesMax = 5;
const nameCharsMax = 255;
const countMax = 2 ** 31 - 1;
const usdMax = 1_000_000;

/** Strings unchanged, everything else as JSON; undefined for undefined and null. */
export function asText(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  return clip(typeof value === 'string' ? value : JSON.stringify(value), textCharsMax);
}

/** The same for values that may contain files: binary data is replaced by its size. */
export function asTextWithoutBytes(value: unknown): string | undefined {
  return typeof value === 'object' ? asText(JSON.stringify(value, sizeOfBytes)) : asText(value);
}

/** Some binary types have a toJSON that runs before the replacer; the holder still has the original. */
function sizeOfBytes(this: unknown, key: string, value: unknown): unknown {
  const original = (this as Record<string, unknown>)[key];
  if (ArrayBuffer.isView(original) || original instanceof ArrayBuffer) {
    return `[${original.byteLength} bytes]`;
  }
  return typeof value === 'bigint' ? value.toString() : value;
}

function clip(text: string | undefined, charsMax: number): string | undefined {
  if (text === undefined || text.length <= charsMax) return text;
  return `${text.slice(0, charsMax)}… [truncated, ${text.length} characters in total]`;
}

/** The error's message with those of its causes, because SDKs often say only "Connection error." Never empty. */
export function errorText(error: unknown): string {
  const [text, ...causes] = causesOf(error);
  const why = causes.length === 0 ? '' : ` (cause: ${causes.join(', ')})`;
  return clip(`${text ?? ''}${why}`, errorCharsMax) || 'unknown error';
}

function causesOf(error: unknown): string[] {
  const texts: string[] = [];
  for (let at = error, depth = 0; isThere(at) && depth < causesMax; depth++) {
    const text = readable(at);
    if (text !== undefined && !texts.includes(text)) texts.push(text);
    at = (at as { cause?: unknown }).cause;
  }
  return texts;
}

function readable(error: unknown): string | undefined {
  const { message, code, name } = error as Record<string, unknown>;
  const named = [message, code, error instanceof Error ? name : undefined];
  const text = named.find((value) => typeof value === 'string' && value !== '');
  if (text !== undefined) return text as string;
  try {
    return asText(error);
  } catch {
    return String(error);
  }
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** A model or label as the server accepts it: 1 to 255 characters without control characters; otherwise undefined. */
export function cleanName(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  // oxlint-disable-next-line no-control-regex
  const name = value.replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ').slice(0, nameCharsMax);
  return name === '' ? undefined : name;
}

/** A count as the server accepts it; otherwise undefined. */
export function cleanCount(value: unknown): number | undefined {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= countMax
    ? (value as number)
    : undefined;
}

/** The parts of a count, unless they are more than the count: the server would reject the trace. */
export function cleanParts<N extends string>(
  whole: number | undefined,
  parts: Readonly<Record<N, unknown>>,
): Partial<Record<N, number | undefined>> {
  const names = Object.keys(parts) as N[];
  const counts = Object.fromEntries(names.map((name) => [name, cleanCount(parts[name])])) as Record<
    N,
    number | undefined
  >;
  const sum = names.reduce((total, name) => total + (counts[name] ?? 0), 0);
  return whole !== undefined && sum > whole ? {} : counts;
}

/** A cost as the server accepts it; otherwise undefined. */
export function cleanUsd(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && value <= usdMax ? value : undefined;
}
