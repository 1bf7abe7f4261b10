import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Trace, TraceCost } from '../../../client/src/reading.ts';
import { exactMoney } from '../format/money.ts';
import { useLoad } from '../live/loader.ts';
import { Command } from '../parts/command.tsx';
import { Failure } from '../parts/failure.tsx';
import { repriceWords, setPriceWords } from '../parts/price-commands.ts';
import { Skeleton } from '../parts/skeleton.tsx';
import { useStore } from '../parts/store.ts';
import { useSession } from '../session/session.ts';
import { todayIn } from '../view/local-time.ts';
import { CostFormula, shortFormula } from './cost-formula.tsx';

/** Which prices the cost was computed with, or why there is none. Nothing if the app sent the cost. */
export function CostOrigin({ trace }: { trace: Trace }) {
  const isMissing = trace.cost_usd === null;
  if (!isMissing && trace.cost_source !== 'computed') return null;
  return (
    <LoadedOrigin trace={trace} title={isMissing ? 'Why there is no cost' : 'Computed cost'} />
  );
}

function LoadedOrigin({ trace, title }: { trace: Trace; title: string }) {
  const { reads } = useSession();
  const { state, retry } = useLoad({
    key: trace.id,
    load: (signal) => reads.traceCost(trace.id, signal),
  });
  const [choice, setChoice] = useState<boolean | null>(null);
  // A formula that is right need not be read; everything else needs attention.
  const isPlain = state.kind === 'ready' ? isUpToDate(state.value) : trace.cost_usd !== null;
  const isOpen = choice ?? !isPlain;
  return (
    <section class="card payload cost-origin" aria-labelledby="cost-heading">
      <details open={isOpen} onToggle={(event) => setChoice(event.currentTarget.open)}>
        <summary class="payload-heading">
          <h2 id="cost-heading">{title}</h2>
          {state.kind === 'ready' && isUpToDate(state.value) && (
            <span class="muted small cost-short">{shortFormula(state.value)}</span>
          )}
        </summary>
        {isOpen && (
          <div class="cost-body">
            {state.kind === 'loading' && <Skeleton rows={3} />}
            {state.kind === 'failed' && <Failure error={state.error} onRetry={retry} />}
            {state.kind === 'ready' && <Origin trace={trace} cost={state.value} />}
          </div>
        )}
      </details>
    </section>
  );
}

function isUpToDate({ cost_usd, is_current: isCurrent }: TraceCost): boolean {
  return cost_usd !== null && isCurrent;
}

interface OriginProps {
  trace: Trace;
  cost: TraceCost;
}

function Origin({ trace, cost }: OriginProps) {
  if (cost.reason !== null) return <WithoutCost trace={trace} cost={cost} reason={cost.reason} />;
  if (isUpToDate(cost)) {
    return <CostFormula cost={cost} totalName="Cost" caption="How the cost was computed" />;
  }
  return (
    <>
      <p>
        <strong>The prices have changed since this cost was computed.</strong>{' '}
        {cost.computed_usd === null
          ? `Today there is no price for this call; ${amount(cost.cost_usd)} is stored. This command removes the cost:`
          : `Today they give ${amount(cost.computed_usd)}; ${amount(cost.cost_usd)} is stored. This command changes it:`}
      </p>
      <RepriceCommand trace={trace} at={cost.at} />
      <Now cost={cost} />
    </>
  );
}

function amount(usd: number | null): string {
  return usd === null ? 'nothing' : exactMoney(usd);
}

/** What the present prices give, which is not what is stored. */
function Now({ cost }: { cost: TraceCost }) {
  if (cost.computed_usd === null) return <Steps steps={cost.steps} />;
  return (
    <CostFormula cost={cost} totalName="By today’s prices" caption="What today’s prices give" />
  );
}

type Reason = NonNullable<TraceCost['reason']>;

const reasonWords: Record<Reason, ComponentChildren> = {
  tokens_unknown: (
    <>
      The call was recorded without a cost and without token counts, so none can be computed. Send{' '}
      <code>cost_usd</code>, or <code>prompt_tokens</code> and <code>completion_tokens</code>.
    </>
  ),
  price_unknown: (
    <>
      There is no price for this model. Set one, in US dollars per million tokens, and compute the
      cost again:
    </>
  ),
  tokens_unpriced:
    'There is a price for this model, but it does not say what these tokens cost: some have no price, or it is not known how many have which.',
  pricing_off: (
    <>
      The server computes no cost for calls that are sent to <code>POST /traces</code>, because it
      runs without <code>--price-missing-costs</code>. A call that came in by OpenTelemetry had no
      price yet. Now there is one, and this command computes the cost:
    </>
  ),
  priced_later: (
    <>
      When the call was recorded, there was no price for it, or the server ran without{' '}
      <code>--price-missing-costs</code>. Now there is one, and this command computes the cost:
    </>
  ),
};

function WithoutCost({ trace, cost, reason }: OriginProps & { reason: Reason }) {
  const isPriced = reason === 'pricing_off' || reason === 'priced_later';
  return (
    <>
      <p>{reasonWords[reason]}</p>
      {reason === 'price_unknown' && (
        <Command name="command that sets a price" words={setPriceWords(trace.model)} />
      )}
      {(isPriced || reason === 'price_unknown') && <RepriceCommand trace={trace} at={cost.at} />}
      {isPriced && <Now cost={cost} />}
      {(reason === 'price_unknown' || reason === 'tokens_unpriced') && <Steps steps={cost.steps} />}
    </>
  );
}

/** For the calls of the same model on the same day. */
function RepriceCommand({ trace, at }: { trace: Trace; at: string }) {
  const { team, timeZone } = useSession();
  const day = todayIn(useStore(timeZone), Date.parse(at));
  const words = repriceWords({ team: team.name, from: day, to: day, model: trace.model });
  return <Command name="command that computes the cost again" words={words} />;
}

/** Where a price was looked for. */
function Steps({ steps }: { steps: readonly string[] }) {
  return (
    <div class="cost-steps">
      <p>Where a price was looked for:</p>
      <ol>
        {steps.map((step, index) => (
          <li key={index}>
            <bdi class="breaking">{step}</bdi>
          </li>
        ))}
      </ol>
    </div>
  );
}
