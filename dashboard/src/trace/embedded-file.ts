import { shortBytes } from '../format/bytes.ts';

/** A media type such as `image/png`. The bounds keep a hostile one from filling the page. */
const mediaType = String.raw`[\w.+-]{1,60}\/[\w.+-]{1,60}`;
const base64 = String.raw`[\w+/-]+={0,2}`;
const dataUrl = String.raw`data:(${mediaType})(?:;[\w-]{1,60}=[\w.+-]{1,60}){0,5};base64,(${base64})`;

const isMediaType = new RegExp(`^${mediaType}$`);
const isBase64 = new RegExp(`^${base64}$`);
const isDataUrl = new RegExp(`^${dataUrl}$`);
const everyDataUrl = new RegExp(dataUrl, 'g');

/** How the base64 text of common file types starts. */
const knownStarts: readonly (readonly [start: string, type: string])[] = [
  ['iVBORw0KGgo', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
  ['JVBERi0', 'application/pdf'],
];
/** A shorter text that starts like this may be a word. */
const undeclaredCharsMin = 200;

/** The fields in which an object declares the media type of its `data`. */
export const typeFields: readonly string[] = ['media_type', 'mimeType', 'mime_type'];

/** `image/png, 34 KB` for an object that holds a file as base64; null if it is anything else. */
export function fileIn(holder: Readonly<Record<string, unknown>>): string | null {
  const type = typeFields.map((field) => holder[field]).find((value) => value !== undefined);
  return declaredFile(holder['data'], type);
}

/** The same for base64 text and its declared type. */
export function declaredFile(data: unknown, type: unknown): string | null {
  if (typeof data !== 'string' || typeof type !== 'string') return null;
  return isMediaType.test(type) && isBase64.test(data) ? describe(type, data) : null;
}

/** The same for a data URL. */
export function dataUrlFile(url: unknown): string | null {
  const [, type, data] = (typeof url === 'string' && isDataUrl.exec(url)) || [];
  return type === undefined || data === undefined ? null : describe(type, data);
}

/** Replaces each file in the text by its type and size: `[image/png, 34 KB]`. */
export function withoutFiles(text: string): string {
  if (text.includes(';base64,')) {
    return text.replaceAll(everyDataUrl, (_url, type: string, data: string) =>
      placeholder(describe(type, data)),
    );
  }
  if (text.length < undeclaredCharsMin) return text;
  const known = knownStarts.find(([start]) => text.startsWith(start));
  if (known === undefined || !isBase64.test(text)) return text;
  return placeholder(describe(known[1], text));
}

/** How a file appears inside of other text. */
export function placeholder(file: string): string {
  return `[${file}]`;
}

/** Four characters of base64 hold three bytes. */
function describe(type: string, data: string): string {
  const padding = data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0;
  return `${type}, ${shortBytes(Math.floor(((data.length - padding) * 3) / 4))}`;
}
