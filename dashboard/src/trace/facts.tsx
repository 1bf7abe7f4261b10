import type { ComponentChildren } from 'preact';
import type { Trace } from '../../../client/src/reading.ts';
import { exactCount } from '../format/count.ts';
import { exactTime } from '../format/moment.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { CallCost, Count, Duration, Unknown } from '../parts/quantity.tsx';
import { RelativeTime } from '../parts/relative-time.tsx';
import { tracesHref } from '../route/route.ts';
import { filterNames } from '../view/filters.ts';
import type { FilterField } from '../view/filters.ts';

/** What is known about one call, apart from its text. */
export function Facts({ trace }: { trace: Trace }) {
  return (
    <div class="card facts-card">
      <dl class="facts">
        <Fact name="Cost">
          <CallCost usd={trace.cost_usd} />
          {trace.cost_source !== undefined && (
            <span class="muted small fact-more">{sourceWords[trace.cost_source]}</span>
          )}
        </Fact>
        <Fact name="Latency">
          <Duration value={trace.latency_ms} />
        </Fact>
        <Fact name="Tokens in">
          <Count value={trace.prompt_tokens} />
          <Part count={trace.cache_read_tokens} of="cached" />
          <Part count={trace.cache_write_tokens} of="written to the cache" />
        </Fact>
        <Fact name="Tokens out">
          <Count value={trace.completion_tokens} />
          <Part count={trace.reasoning_tokens} of="for reasoning" />
        </Fact>
        <Fact name="Feature">
          <Label field="feature_name" text={trace.feature_name} />
        </Fact>
        <Fact name="User">
          <Label field="user_identifier" text={trace.user_identifier} />
        </Fact>
        {trace.ttft_ms !== undefined && (
          <Fact name="First token after">
            <Duration value={trace.ttft_ms} />
          </Fact>
        )}
        {trace.response_model !== undefined && (
          <Fact name="Answered by">
            <bdi class="breaking">{trace.response_model}</bdi>
          </Fact>
        )}
        {optionalLabels.map((field) => {
          const text = trace[field];
          if (text === undefined) return null;
          return (
            <Fact key={field} name={filterNames[field]}>
              <Label field={field} text={text} />
            </Fact>
          );
        })}
        {trace.started_at !== undefined && (
          <Fact name="Started" isWide>
            <Time at={trace.started_at} />
          </Fact>
        )}
        <Fact name="Recorded" isWide>
          <Time at={trace.created_at} />
        </Fact>
        <Fact name="ID" isWide>
          <code class="breaking">{trace.id}</code>
          <CopyButton label="Copy the ID" text={() => trace.id} />
        </Fact>
      </dl>
    </div>
  );
}

const sourceWords = {
  computed: 'computed from the tokens',
  client: 'sent by the app',
} as const satisfies Record<NonNullable<Trace['cost_source']>, string>;

const optionalLabels = [
  'environment',
  'provider',
  'error_type',
  'session_id',
  'run_id',
] as const satisfies readonly FilterField[];

interface FactProps {
  name: string;
  isWide?: boolean;
  children: ComponentChildren;
}

function Fact({ name, isWide = false, children }: FactProps) {
  return (
    <div class={isWide ? 'fact wide' : 'fact'}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** A part of a number of tokens; nothing if it is not known. */
function Part({ count, of }: { count: number | undefined; of: string }) {
  if (count === undefined) return null;
  return (
    <span class="muted small fact-more">
      {exactCount(count)} {of}
    </span>
  );
}

function Time({ at }: { at: string }) {
  return (
    <>
      <RelativeTime at={at} />
      <span class="muted small fact-more">{exactTime(Date.parse(at))}</span>
    </>
  );
}

/** A name that leads to all traces with it. */
function Label({ field, text }: { field: FilterField; text: string | null }) {
  if (text === null) return <Unknown />;
  const question = { range: null, filters: { [field]: [text] } };
  return (
    <a
      class="name-link breaking"
      href={tracesHref({ question })}
      title={`Show all traces of this ${filterNames[field].toLowerCase()}`}
    >
      <bdi>{text}</bdi>
    </a>
  );
}
