import type { ListedTrace } from '../../../client/src/reading.ts';
import { CallCost, Count, Duration, Unknown } from '../parts/quantity.tsx';
import { RelativeTime } from '../parts/relative-time.tsx';
import { Status } from '../parts/status.tsx';
import { NameLink } from '../parts/name-link.tsx';
import { navigation } from '../route/navigation.ts';
import { traceHref } from '../route/route.ts';
import type { TracesRoute } from '../route/route.ts';
import type { FilterField } from '../view/filters.ts';
import { promptPreview } from './preview.ts';

interface TraceRowProps {
  route: TracesRoute;
  trace: ListedTrace;
  /** It arrived while the list was open. */
  isNew: boolean;
  formatCost: (usd: number) => string;
}

/** An error message may be megabytes long; its beginning is enough to recognize it. */
const errorCharsMax = 200;

export function TraceRow({ route, trace, isNew, formatCost }: TraceRowProps) {
  const href = traceHref(trace.id);
  const prompt = promptPreview(trace.input);
  // When the call began, if that is known; the list is in the order in which the traces were recorded.
  const at = trace.started_at ?? trace.created_at;
  const error = trace.error_message?.slice(0, errorCharsMax) ?? null;
  return (
    <tr
      role="row"
      class={`trace-row ${isNew ? 'new' : ''}`}
      onClick={(event) => openRow(event, href)}
    >
      <td role="cell" class="at">
        <a href={href}>
          <RelativeTime at={at} />
          <span class="visually-hidden">, {trace.model}</span>
        </a>
      </td>
      <td role="cell" class="status-cell">
        <Status status={trace.status} />
        {error !== null && (
          <span class="row-error" title={error}>
            <bdi>{error}</bdi>
          </span>
        )}
        {trace.damaged !== undefined && (
          <span class="row-error">Damaged: {trace.damaged.join(', ')}</span>
        )}
      </td>
      <td role="cell" class="model">
        <NameLink route={route} field="model" value={trace.model} />
        {prompt !== null && (
          <span class="row-prompt" title={prompt}>
            <bdi>{prompt}</bdi>
          </span>
        )}
      </td>
      <Label class="feature" route={route} field="feature_name" text={trace.feature_name} />
      <Label class="user" route={route} field="user_identifier" text={trace.user_identifier} />
      <td role="cell" class="number tokens-in">
        <Count value={trace.prompt_tokens} />
      </td>
      <td role="cell" class="number tokens-out">
        <Count value={trace.completion_tokens} />
      </td>
      <td role="cell" class="number latency">
        <Duration value={trace.latency_ms} />
      </td>
      <td role="cell" class="number cost">
        <CallCost usd={trace.cost_usd} format={formatCost} />
      </td>
    </tr>
  );
}

interface LabelProps {
  class: string;
  route: TracesRoute;
  field: FilterField;
  text: string | null;
}

function Label({ class: className, route, field, text }: LabelProps) {
  return (
    <td role="cell" class={className}>
      {text === null ? <Unknown /> : <NameLink route={route} field={field} value={text} />}
    </td>
  );
}

/** A click anywhere in the row opens the trace; keyboards, new tabs and screen readers use the link in it. */
function openRow(event: MouseEvent, href: string): void {
  const isPlain =
    event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  const isOnLink = event.target instanceof Element && event.target.closest('a') !== null;
  // Releasing the mouse after selecting text is not a click.
  if (isPlain && !isOnLink && getSelection()?.isCollapsed !== false) navigation.go(href);
}
