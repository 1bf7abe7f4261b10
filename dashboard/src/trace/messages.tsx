import { useState } from 'preact/hooks';
import { counted } from '../format/count.ts';
import type { ChatMessage, ChatPart } from './chat-messages.ts';
import { LongText } from './long-text.tsx';

const messagesAtFirst = 40;
const partCharsAtFirst = 4_000;

/** A conversation, message by message. */
export function Messages({ messages }: { messages: readonly ChatMessage[] }) {
  const [shown, setShown] = useState(messagesAtFirst);
  const hidden = messages.length - shown;
  return (
    <>
      <ol class="messages">
        {messages.slice(0, shown).map((message, index) => (
          <li key={index} class={`message ${roleClass(message.role)}`}>
            <h3 class="message-role">
              <bdi>{message.role}</bdi>
            </h3>
            <div class="message-parts">
              {message.parts.map((part, place) => (
                <Part key={place} part={part} />
              ))}
              {message.parts.length === 0 && <p class="muted">Empty.</p>}
            </div>
          </li>
        ))}
      </ol>
      {hidden > 0 && (
        <div class="long-text-more">
          <button
            type="button"
            class="button small"
            onClick={() => setShown(shown + messagesAtFirst)}
          >
            Show {counted(Math.min(hidden, messagesAtFirst), 'more message')}
          </button>
          <span class="muted small">{counted(messages.length, 'message')} in all</span>
        </div>
      )}
    </>
  );
}

function Part({ part }: { part: ChatPart }) {
  const text = part.kind === 'text' ? part.text : part.json;
  return (
    <>
      {part.kind === 'data' && part.name !== '' && <p class="part-name">{part.name}</p>}
      <LongText
        class={part.kind === 'data' ? 'mono' : ''}
        identity={text}
        pieces={() => [text]}
        chars={text.length}
        firstChars={partCharsAtFirst}
      />
    </>
  );
}

/** Only the known ones have a look of their own; a role is text that anybody may have written. */
function roleClass(role: string): string {
  return ['system', 'developer', 'user', 'assistant', 'tool'].includes(role) ? role : 'other';
}
