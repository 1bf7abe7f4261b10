import type { Trace } from '../../../client/src/reading.ts';
import { TraceTallyError } from '../../../client/src/reading.ts';
import { useLoad } from '../live/loader.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { Failure } from '../parts/failure.tsx';
import { LoadingWords, Skeleton } from '../parts/skeleton.tsx';
import { Status } from '../parts/status.tsx';
import { tracesHref } from '../route/route.ts';
import { useSession } from '../session/session.ts';
import { PageHeading } from '../shell/page-heading.tsx';
import { CostOrigin } from './cost-origin.tsx';
import { Facts } from './facts.tsx';
import { Metadata } from './metadata.tsx';
import { Payload } from './payload.tsx';
import { RelatedCalls } from './related-calls.tsx';

export function TraceView({ id }: { id: string }) {
  const session = useSession();
  const { state, retry } = useLoad({
    key: id,
    load: (signal) => session.reads.trace(id, signal),
  });
  const trace = state.kind === 'ready' ? state.value : null;
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href={session.lastList?.fragment ?? tracesHref()}>
          <span aria-hidden="true">‹ </span>All traces
        </a>
      </nav>
      <PageHeading title={trace?.model ?? 'Trace'}>
        {trace !== null && <TraceTools trace={trace} />}
      </PageHeading>
      {trace !== null && <TraceContent trace={trace} />}
      {state.kind === 'loading' && (
        <>
          <LoadingWords />
          <div class="card">
            <Skeleton rows={12} class="table-skeleton" />
          </div>
        </>
      )}
      {state.kind === 'failed' &&
        (isMissing(state.error) ? (
          <Missing id={id} />
        ) : (
          <Failure error={state.error} onRetry={retry} />
        ))}
    </>
  );
}

function TraceTools({ trace }: { trace: Trace }) {
  return (
    <>
      <Status status={trace.status} />
      <div class="page-tools">
        <CopyButton label="Copy JSON of this trace" text={() => JSON.stringify(trace, null, 2)}>
          Copy JSON
        </CopyButton>
      </div>
    </>
  );
}

function TraceContent({ trace }: { trace: Trace }) {
  return (
    <>
      <Facts trace={trace} />
      {(trace.error_message !== null || trace.status === 'error') && (
        <Payload title="Error" text={trace.error_message} tone="error" />
      )}
      <CostOrigin trace={trace} />
      <RelatedCalls trace={trace} />
      <div class="payloads">
        <Payload title="Input" text={trace.input} />
        <Payload title="Output" text={trace.output} />
      </div>
      <Metadata metadata={trace.metadata} />
    </>
  );
}

function Missing({ id }: { id: string }) {
  return (
    <div class="failure" role="alert">
      <h2>Trace not found</h2>
      <p>
        <code class="breaking">{id}</code> does not exist, or belongs to another team.
      </p>
      <a class="button" href={tracesHref()}>
        See all traces
      </a>
    </div>
  );
}

function isMissing(error: unknown): boolean {
  return error instanceof TraceTallyError && error.code === 'trace_not_found';
}
