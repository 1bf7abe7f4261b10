import { baseUrl } from '../api/base-url.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { PageHeading } from '../shell/page-heading.tsx';
import { clientSnippet, curlSnippet, keyVariable } from './snippets.ts';

/** Before the first trace: how to send it. The page notices by itself when it is there. */
export function EmptyState() {
  const url = baseUrl().replace(/\/$/, '');
  return (
    <div class="empty">
      <PageHeading title="Record your first call" />
      <p class="empty-lead">
        Send one trace, and this page turns into your dashboard by itself. First put a key with the
        scope <code>ingest</code> or <code>full</code> into the environment:{' '}
        <code>export {keyVariable}=tt_…</code>
      </p>
      <Snippet title="From a terminal" name="curl command" code={curlSnippet(url)} />
      <Snippet title="From TypeScript" name="TypeScript code" code={clientSnippet(url)} />
      <p class="empty-waiting" role="status">
        <span class="live-dot" aria-hidden="true" /> Waiting for the first trace…
      </p>
    </div>
  );
}

interface SnippetProps {
  title: string;
  name: string;
  code: string;
}

function Snippet({ title, name, code }: SnippetProps) {
  return (
    <section class="card snippet">
      <div class="payload-heading">
        <h2>{title}</h2>
        <div class="payload-tools">
          <CopyButton label={`Copy the ${name}`} text={() => code}>
            Copy
          </CopyButton>
        </div>
      </div>
      <pre tabIndex={0} aria-label={name}>
        <code>{code}</code>
      </pre>
    </section>
  );
}
