import { conversationOf } from './chat-messages.ts';
import type { Conversation } from './chat-messages.ts';
import { withoutFiles } from './embedded-file.ts';

/** The forms in which a payload can be shown. */
export interface PayloadForm {
  text: string;
  /** Null if it is not a conversation. */
  conversation: Conversation | null;
  isJson: boolean;
  /** Plain text with placeholders for the files in it; null if there are none, or if it is JSON. */
  textWithoutFiles: string | null;
}

export type PayloadView = 'messages' | 'json' | 'text' | 'raw';

export function payloadForm(text: string): PayloadForm {
  const value = parseContainer(text);
  const conversation = value === null ? null : conversationOf(value);
  const short = value === null ? withoutFiles(text) : text;
  const textWithoutFiles = short === text ? null : short;
  return { text, conversation, isJson: value !== null, textWithoutFiles };
}

export function viewsOf({ conversation, isJson, textWithoutFiles }: PayloadForm): PayloadView[] {
  return [
    ...(conversation === null ? [] : (['messages'] as const)),
    ...(isJson ? (['json'] as const) : []),
    ...(textWithoutFiles === null ? [] : (['text'] as const)),
    'raw',
  ];
}

/** An object or a list; a single string or number is shown as it is. */
function parseContainer(text: string): object | null {
  if (!/^\s*[[{]/.test(text)) return null;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}
