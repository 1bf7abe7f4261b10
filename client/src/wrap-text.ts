/**
 * The service takes traces of up to 5 MiB. Input and output of this length stay below it in any common script, and a trace whose
 * payload was cut is worth more than one that is refused.
 */
const textCharsMax = 800_000;
const errorCharsMax = 10_000;
const causesMax = 5;
const nameCharsMax = 255;
const countMax = 2 ** 31 - 1;
const usdMax = 1_000_000;

/** Text as it is, everything else as JSON; nothing where there is nothing. */
export function asText(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  return clip(typeof value === 'string' ? value : JSON.stringify(value), textCharsMax);
}

/** The same for values that may hold files: only the size of binary data is kept. */
export function asTextWithoutBytes(value: unknown): string | undefined {
  return typeof value === 'object' ? asText(JSON.stringify(value, sizeOfBytes)) : asText(value);
}

/** Some binary types turn themselves into lists of numbers before a replacer sees them; their holder still has the original. */
function sizeOfBytes(this: unknown, key: string, value: unknown): unknown {
  const original = (this as Record<string, unknown>)[key];
  if (ArrayBuffer.isView(original) || original instanceof ArrayBuffer) {
    return `[${original.byteLength} bytes]`;
  }
  return typeof value === 'bigint' ? value.toString() : value;
}

function clip(text: string | undefined, charsMax: number): string | undefined {
  if (text === undefined || text.length <= charsMax) return text;
  return `${text.slice(0, charsMax)}… [cut, ${text.length} characters in all]`;
}

/** What went wrong in words, with what caused it: SDKs tend to say only "Connection error." Never empty. */
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

/** A model or label as the service takes it: 1 to 255 characters without control characters; else nothing. */
export function cleanName(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  // oxlint-disable-next-line no-control-regex
  const name = value.replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ').slice(0, nameCharsMax);
  return name === '' ? undefined : name;
}

/** A count as the service takes it; else nothing. */
export function cleanCount(value: unknown): number | undefined {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= countMax
    ? (value as number)
    : undefined;
}

/** A cost as the service takes it; else nothing. */
export function cleanUsd(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && value <= usdMax ? value : undefined;
}
