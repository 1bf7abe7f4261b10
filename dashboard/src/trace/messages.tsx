import { useMemo, useState } from 'preact/hooks';
import { counted } from '../format/count.ts';
import { firstMessages } from './chat-messages.ts';
import type { ChatPart, Conversation } from './chat-messages.ts';
import { withoutFiles } from './embedded-file.ts';
import { indentValue } from './indent-json.ts';
import { LongText } from './long-text.tsx';

/** Together these bound what is laid out at a time: 60 parts of 4,000 characters. */
const partsAtATime = 60;
const partCharsAtFirst = 4_000;

interface MessagesProps {
  conversation: Conversation;
  /** Shows the recorded text instead. */
  onRaw: () => void;
}

/** A conversation, message by message. */
export function Messages({ conversation, onRaw }: MessagesProps) {
  const [shownParts, setShownParts] = useState(partsAtATime);
  const { messages, isWhole } = useMemo(
    () => firstMessages(conversation, shownParts),
    [conversation, shownParts],
  );
  return (
    <>
      <ol class="messages">
        {messages.map((message, index) => (
          <li key={index} class={`message ${roleClass(message.role)}`}>
            <h3 class="message-role">
              <bdi>{message.role}</bdi>
            </h3>
            <div class="message-parts">
              {message.parts.map((part, place) => (
                <Part key={place} part={part} onRaw={onRaw} />
              ))}
              {message.parts.length === 0 && <p class="muted">Empty.</p>}
            </div>
          </li>
        ))}
      </ol>
      {!isWhole && (
        <div class="long-text-more">
          <button
            type="button"
            class="button small"
            onClick={() => setShownParts(shownParts + partsAtATime)}
          >
            Show more
          </button>
          <button type="button" class="button small" onClick={onRaw}>
            Show raw
          </button>
          <span class="muted small">… {counted(conversation.length, 'message')} in total</span>
        </div>
      )}
    </>
  );
}

function Part({ part, onRaw }: { part: ChatPart; onRaw: () => void }) {
  if (part.kind === 'file') {
    return (
      <p class="part-file" title="A file in the recorded text. “Raw” shows it as it was recorded.">
        {part.file}
      </p>
    );
  }
  const value = part.kind === 'text' ? part.text : part.value;
  return (
    <>
      {part.kind === 'data' && part.name !== '' && <p class="part-name">{part.name}</p>}
      <LongText
        class={part.kind === 'data' ? 'mono' : ''}
        identity={value}
        pieces={() => (typeof value === 'string' ? [withoutFiles(value)] : indentValue(value))}
        chars={typeof value === 'string' ? value.length : null}
        firstChars={partCharsAtFirst}
        onRaw={onRaw}
      />
    </>
  );
}

/** Only known roles have their own style; a role may be any text. */
function roleClass(role: string): string {
  return ['system', 'developer', 'user', 'assistant', 'tool'].includes(role) ? role : 'other';
}
