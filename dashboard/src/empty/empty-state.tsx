import type { ComponentChildren } from 'preact';
import { baseUrl } from '../api/base-url.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { useSession } from '../session/session.ts';
import { PageHeading } from '../shell/page-heading.tsx';
import { clientSnippet, curlSnippet, keySnippet } from './snippets.ts';

/** Shown before the first trace: how to send it. The page updates when it arrives. */
export function EmptyState() {
  const { team } = useSession();
  const url = baseUrl().replace(/\/$/, '');
  return (
    <div class="empty">
      <PageHeading title="Record your first call" />
      <p class="empty-lead">
        Recording needs an API key with the scope <code>ingest</code> or <code>full</code>; a key
        with the scope <code>read</code> opens this page but cannot record. Create a key, then send
        a trace. This page updates when the trace arrives.
      </p>
      <Snippet
        title="1. Create a key"
        name="key command"
        code={keySnippet(team.name)}
        hint={
          <>
            Run this on the server, in the TraceTally folder. If you start the server with{' '}
            <code>--database</code>, add the same flag here.
          </>
        }
      />
      <Snippet
        title="2. Send a trace from the same terminal"
        name="curl command"
        code={curlSnippet(url)}
      />
      <Snippet title="Or from TypeScript" name="TypeScript code" code={clientSnippet(url)} />
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
  hint?: ComponentChildren;
}

function Snippet({ title, name, code, hint }: SnippetProps) {
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
      {hint !== undefined && <p class="snippet-hint">{hint}</p>}
      <pre tabIndex={0} aria-label={name}>
        <code>{code}</code>
      </pre>
    </section>
  );
}
