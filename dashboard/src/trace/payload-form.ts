import { conversationOf } from './chat-messages.ts';
import type { Conversation } from './chat-messages.ts';

/** The ways in which a payload can be read. */
export interface PayloadForm {
  text: string;
  /** Null if it is not a conversation. */
  conversation: Conversation | null;
  isJson: boolean;
}

export type PayloadView = 'messages' | 'json' | 'text';

export function payloadForm(text: string): PayloadForm {
  const value = parseContainer(text);
  const conversation = value === null ? null : conversationOf(value);
  return { text, conversation, isJson: value !== null };
}

export function viewsOf({ conversation, isJson }: PayloadForm): PayloadView[] {
  return [
    ...(conversation === null ? [] : (['messages'] as const)),
    ...(isJson ? (['json'] as const) : []),
    'text',
  ];
}

/** An object or a list; a lone string or number is better read as it is. */
function parseContainer(text: string): object | null {
  if (!/^\s*[[{]/.test(text)) return null;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}
