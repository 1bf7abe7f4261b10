import { chatMessagesOf } from './chat-messages.ts';
import type { ChatMessage } from './chat-messages.ts';

/** The ways in which a payload can be read. */
export interface PayloadForm {
  text: string;
  /** Where it is a conversation. */
  messages: readonly ChatMessage[] | null;
  isJson: boolean;
}

export type PayloadView = 'messages' | 'json' | 'text';

export function payloadForm(text: string): PayloadForm {
  const value = parseContainer(text);
  return { text, messages: value === null ? null : chatMessagesOf(value), isJson: value !== null };
}

export function viewsOf({ messages, isJson }: PayloadForm): PayloadView[] {
  return [
    ...(messages === null ? [] : (['messages'] as const)),
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
