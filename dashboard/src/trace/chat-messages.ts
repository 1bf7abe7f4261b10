import { dataUrlFile, fileIn } from './embedded-file.ts';

type Fields = Readonly<Record<string, unknown>>;

/** The messages as recorded. Each is parsed only when it is shown, since there may be hundreds of thousands. */
export type Conversation = readonly Fields[];

/** A message as it is shown. */
export interface ChatMessage {
  role: string;
  parts: readonly ChatPart[];
}

export type ChatPart =
  | { kind: 'text'; text: string }
  /** An image or other file, by its type and size. */
  | { kind: 'file'; file: string }
  | { kind: 'data'; name: string; value: unknown };

export interface FirstMessages {
  messages: readonly ChatMessage[];
  /** False if there is more than these. */
  isWhole: boolean;
}

/** Roles and part names are short; anything longer is not a name. */
const nameCharsMax = 255;

/**
 * Reads what the common APIs take: a list of messages, an object that holds one, or a single message. Null if it is not a
 * conversation; then it is shown as JSON.
 */
export function conversationOf(value: unknown): Conversation | null {
  if (Array.isArray(value)) return conversationOfList(value);
  if (!isFields(value)) return null;
  const list = value['messages'] ?? value['contents'];
  if (!Array.isArray(list)) return isMessage(value) ? [value] : null;
  const messages = conversationOfList(list);
  const system = value['system'] ?? value['instructions'];
  if (messages === null || system === undefined || system === null) return messages;
  return [{ role: 'system', content: system }, ...messages];
}

function conversationOfList(list: readonly unknown[]): Conversation | null {
  return list.every(isFields) && list.some(isMessage) ? list : null;
}

function isMessage(value: Fields): boolean {
  return typeof value['role'] === 'string' && ('content' in value || 'parts' in value);
}

/** The first parts of a conversation, in their messages. A message without parts counts as one. */
export function firstMessages(conversation: Conversation, partsMax: number): FirstMessages {
  const messages: ChatMessage[] = [];
  let left = partsMax;
  for (const recorded of conversation) {
    if (left <= 0) return { messages, isWhole: false };
    const parts: ChatPart[] = [];
    messages.push({ role: roleOf(recorded), parts });
    for (const part of partsOf(recorded)) {
      if (left <= 0) return { messages, isWhole: false };
      parts.push(part);
      left -= 1;
    }
    if (parts.length === 0) left -= 1;
  }
  return { messages, isWhole: true };
}

function roleOf({ role, type }: Fields): string {
  // In some APIs tool calls are items between the messages.
  const name = typeof role === 'string' ? role : type;
  return typeof name === 'string' ? shortName(name) : 'item';
}

function* partsOf(message: Fields): Generator<ChatPart, void, undefined> {
  if (typeof message['role'] !== 'string') {
    yield dataPart('', message);
    return;
  }
  yield* contentParts(message['content'] ?? message['parts']);
  for (const name of Object.keys(message)) {
    if (['role', 'content', 'parts', 'type'].includes(name)) continue;
    if (!isNothing(message[name])) yield dataPart(name, message[name]);
  }
}

function* contentParts(content: unknown): Generator<ChatPart, void, undefined> {
  if (content === null || content === undefined) return;
  if (typeof content === 'string') yield { kind: 'text', text: content };
  else if (Array.isArray(content)) for (const item of content) yield contentPart(item);
  else yield dataPart('', content);
}

function contentPart(item: unknown): ChatPart {
  if (typeof item === 'string') return { kind: 'text', text: item };
  if (!isFields(item)) return dataPart('', item);
  const { type, text, content } = item;
  if (typeof text === 'string') return { kind: 'text', text };
  // As OpenTelemetry has it.
  if (type === 'text' && typeof content === 'string') return { kind: 'text', text: content };
  const file = fileOf(item);
  if (file !== null) return { kind: 'file', file };
  return dataPart(typeof type === 'string' ? type : '', item);
}

/** A file as OpenAI (`image_url`), Anthropic (`source`) or Gemini (`inlineData`) take it. */
function fileOf(item: Fields): string | null {
  const holder = item['image_url'] ?? item['source'] ?? item['inlineData'] ?? item['inline_data'];
  if (!isFields(holder)) return dataUrlFile(holder);
  return dataUrlFile(holder['url']) ?? fileIn(holder);
}

function dataPart(name: string, value: unknown): ChatPart {
  return { kind: 'data', name: shortName(name), value };
}

function shortName(name: string): string {
  return name.length > nameCharsMax ? `${name.slice(0, nameCharsMax).toWellFormed()}…` : name;
}

function isNothing(field: unknown): boolean {
  return field === null || field === undefined || (Array.isArray(field) && field.length === 0);
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
