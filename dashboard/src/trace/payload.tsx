import { useId, useMemo, useState } from 'preact/hooks';
import { counted } from '../format/count.ts';
import { Choice } from '../parts/choice.tsx';
import { CopyButton } from '../parts/copy-button.tsx';
import { indentJson } from './indent-json.ts';
import { LongText } from './long-text.tsx';
import { Messages } from './messages.tsx';
import { payloadForm, viewsOf } from './payload-form.ts';
import type { PayloadForm, PayloadView } from './payload-form.ts';

interface PayloadProps {
  title: string;
  text: string | null;
  tone?: 'plain' | 'error';
}

const viewNames: Readonly<Record<PayloadView, string>> = {
  messages: 'Messages',
  json: 'JSON',
  text: 'Text',
  raw: 'Raw',
};

/** A prompt, an answer or an error, exactly as recorded or in a form that is easier to read. */
export function Payload({ title, text, tone = 'plain' }: PayloadProps) {
  const headingId = useId();
  const form = useMemo(() => payloadForm(text ?? ''), [text]);
  const views = viewsOf(form);
  const [chosen, setChosen] = useState<PayloadView | null>(null);
  const view = chosen ?? views[0] ?? 'raw';
  const showRaw = (): void => setChosen('raw');
  return (
    <section class={`card payload ${tone}`} aria-labelledby={headingId}>
      <div class="payload-heading">
        <h2 id={headingId}>{title}</h2>
        {text !== null && text !== '' && (
          <>
            <span class="muted small">{counted(text.length, 'character')}</span>
            <div class="payload-tools">
              {views.length > 1 && (
                <Choice
                  label={`Show ${title.toLowerCase()} as`}
                  options={views.map((value) => ({ value, label: viewNames[value] }))}
                  value={view}
                  onChange={setChosen}
                />
              )}
              <CopyButton label={`Copy ${title.toLowerCase()}`} text={() => text}>
                Copy
              </CopyButton>
            </div>
          </>
        )}
      </div>
      {text === null && <p class="payload-none">Not recorded.</p>}
      {text === '' && <p class="payload-none">Empty.</p>}
      {text !== null && text !== '' && view === 'messages' && form.conversation !== null && (
        <Messages conversation={form.conversation} onRaw={showRaw} />
      )}
      {text !== null && text !== '' && view !== 'messages' && (
        <LongText
          class={view === 'json' ? 'mono' : ''}
          identity={`${view} ${headingId} ${text}`}
          pieces={() => piecesOf(form, view)}
          chars={text.length}
          onRaw={view === 'json' ? showRaw : undefined}
        />
      )}
    </section>
  );
}

function piecesOf({ text, textWithoutFiles }: PayloadForm, view: PayloadView): Iterable<string> {
  if (view === 'json') return indentJson(text);
  return [view === 'text' && textWithoutFiles !== null ? textWithoutFiles : text];
}
