/** A message of a conversation, as people read it. */
export interface ChatMessage {
  role: string;
  parts: readonly ChatPart[];
}

export type ChatPart =
  | { kind: 'text'; text: string }
  | { kind: 'data'; name: string; json: string };

type Fields = Readonly<Record<string, unknown>>;

/**
 * Reads what the common APIs take: a list of messages, an object that holds one, or a single message. Null where it is no
 * conversation; then it is shown as JSON.
 */
export function chatMessagesOf(value: unknown): readonly ChatMessage[] | null {
  if (Array.isArray(value)) return messagesOfList(value);
  if (!isFields(value)) return null;
  const list = value['messages'] ?? value['contents'];
  if (!Array.isArray(list)) return isMessage(value) ? [messageOf(value)] : null;
  const messages = messagesOfList(list);
  const system = value['system'] ?? value['instructions'];
  if (messages === null || system === undefined || system === null) return messages;
  return [{ role: 'system', parts: partsOf(system) }, ...messages];
}

function messagesOfList(list: readonly unknown[]): readonly ChatMessage[] | null {
  if (!list.every(isFields) || !list.some(isMessage)) return null;
  return list.map(messageOf);
}

function isMessage(value: Fields): boolean {
  return typeof value['role'] === 'string' && ('content' in value || 'parts' in value);
}

function messageOf(value: Fields): ChatMessage {
  const { role, content, parts, type, ...others } = value;
  if (typeof role !== 'string') {
    // Calls of tools stand between the messages in some APIs.
    return { role: typeof type === 'string' ? type : 'item', parts: [dataPart('', value)] };
  }
  const isNothing = (field: unknown): boolean =>
    field === null || field === undefined || (Array.isArray(field) && field.length === 0);
  const rest = Object.entries(others).filter(([, field]) => !isNothing(field));
  return {
    role,
    parts: [...partsOf(content ?? parts), ...rest.map(([name, field]) => dataPart(name, field))],
  };
}

function partsOf(content: unknown): ChatPart[] {
  if (content === null || content === undefined) return [];
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  if (!Array.isArray(content)) return [dataPart('', content)];
  return content.map((part: unknown) => {
    if (typeof part === 'string') return { kind: 'text', text: part };
    if (!isFields(part)) return dataPart('', part);
    const { type, text } = part;
    if (typeof text === 'string') return { kind: 'text', text };
    return dataPart(typeof type === 'string' ? type : '', part);
  });
}

function dataPart(name: string, value: unknown): ChatPart {
  const json = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  return { kind: 'data', name, json };
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
