import type { ComponentChildren } from 'preact';
import type { Trace } from '../../../client/src/api-types.ts';
import { exactTime } from '../format/moment.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { CallCost, Count, Duration, Unknown } from '../parts/quantity.tsx';
import { RelativeTime } from '../parts/relative-time.tsx';

/** What is known about one call, apart from its text. */
export function Facts({ trace }: { trace: Trace }) {
  return (
    <div class="card facts-card">
      <dl class="facts">
        <Fact name="Cost">
          <CallCost usd={trace.cost_usd} />
        </Fact>
        <Fact name="Latency">
          <Duration value={trace.latency_ms} />
        </Fact>
        <Fact name="Tokens in">
          <Count value={trace.prompt_tokens} />
        </Fact>
        <Fact name="Tokens out">
          <Count value={trace.completion_tokens} />
        </Fact>
        <Fact name="Feature">
          <Label text={trace.feature_name} />
        </Fact>
        <Fact name="User">
          <Label text={trace.user_identifier} />
        </Fact>
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

function Time({ at }: { at: string }) {
  return (
    <>
      <RelativeTime at={at} />
      <span class="muted small fact-more">{exactTime(Date.parse(at))}</span>
    </>
  );
}

function Label({ text }: { text: string | null }) {
  return text === null ? <Unknown /> : <bdi class="breaking">{text}</bdi>;
}
