import type { QueryReply, QueryRow } from '../../../client/src/reading.ts';
import { namesListedMax } from '../api/reads.ts';
import { counted, exactCount } from '../format/count.ts';
import { useQuery } from '../live/use-query.ts';
import { Command } from '../parts/command.tsx';
import { DownloadCsv } from '../parts/download-csv.tsx';
import type { Sheet } from '../parts/download-csv.tsx';
import { Failure } from '../parts/failure.tsx';
import { repriceWords, setPriceWords } from '../parts/price-commands.ts';
import { Skeleton } from '../parts/skeleton.tsx';
import type { Asked } from '../question/use-asked.ts';
import { overviewHref } from '../route/route.ts';
import type { OverviewRoute } from '../route/route.ts';
import { useSession } from '../session/session.ts';
import { UncostedTable } from './uncosted-table.tsx';

interface UncostedCallsProps {
  route: OverviewRoute;
  asked: Asked;
  whole: QueryReply;
}

/** How many of the calls have no cost, and which models they are of. Nothing if all of them have one. */
export function UncostedCalls({ route, asked, whole }: UncostedCallsProps) {
  const { uncosted_calls: uncosted, call_count: calls } = whole.totals;
  if (uncosted === 0) return null;
  return (
    <section class="card uncosted" aria-label="Calls without a cost">
      <p class="uncosted-line">
        <span>
          <strong>{exactCount(uncosted)}</strong> of {counted(calls, 'call')}{' '}
          {uncosted === 1 ? 'has' : 'have'} no cost.
        </span>
        <a
          href={overviewHref({ ...route, uncosted: !route.uncosted })}
          aria-expanded={route.uncosted}
        >
          {route.uncosted ? 'Hide the models' : 'Show the models'}
        </a>
      </p>
      {route.uncosted && <Models route={route} asked={asked} whole={whole} />}
    </section>
  );
}

function Models({ route, asked, whole }: UncostedCallsProps) {
  const { team } = useSession();
  const { state, retry } = useQuery(
    {
      filter: asked.criteria,
      groupBy: ['model', 'provider'],
      order: '-uncosted_calls',
      limit: namesListedMax,
    },
    asked.version,
  );
  if (state.kind === 'failed') return <Failure error={state.error} onRetry={retry} />;
  if (state.kind === 'loading') return <Skeleton rows={3} class="table-skeleton" />;
  const rows = state.value.rows.filter((row) => row.uncosted_calls > 0);
  const [first] = rows;
  if (first === undefined) return null;
  const from = whole.from?.slice(0, 10) ?? everFrom;
  return (
    <>
      <div class="table-title">
        <h2>Models of calls without a cost</h2>
        <DownloadCsv name="Calls without a cost" sheet={() => sheetOf(rows)} />
      </div>
      <UncostedTable route={route} rows={rows} other={state.value.other[0] ?? null} />
      <div class="uncosted-help">
        <p>
          A model that is not in the price list of the server needs a price of your own, in US
          dollars per million tokens. Then compute the missing costs:
        </p>
        <Command name="command that sets a price" words={setPriceWords(first.model ?? '')} />
        <Command
          name="command that computes the missing costs"
          words={repriceWords({ team: team.name, from, isOnlyUncosted: true })}
        />
        <p class="muted">
          Calls without token counts cannot be priced, and calls that are sent to{' '}
          <code>POST /traces</code> are priced only if the server runs with{' '}
          <code>--price-missing-costs</code>. The page of a trace says why it has no cost.
        </p>
      </div>
    </>
  );
}

/** Earlier calls are not accepted. */
const everFrom = '2000-01-01';

function sheetOf(rows: readonly QueryRow[]): Sheet {
  return {
    header: ['model', 'provider', 'uncosted_calls', 'calls'],
    rows: rows.map(({ model = null, provider = null, uncosted_calls: uncosted, call_count }) => [
      model,
      provider,
      uncosted,
      call_count,
    ]),
  };
}
