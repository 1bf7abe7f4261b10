import { readRange } from '../core/asked-range.ts';
import { calendarOf } from '../core/calendar.ts';
import { formatExactDollars } from '../core/money.ts';
import { loadPriceList } from '../core/prices/load-price-list.ts';
import { OwnPrices } from '../core/prices/own-prices.ts';
import { openPricer } from '../core/prices/pricer.ts';
import { RepriceResult } from '../core/reprice.ts';
import type { ModelResult, RepriceFilter } from '../core/reprice.ts';
import { uuidV7 } from '../core/uuid.ts';
import { limits } from '../limits.ts';
import type { RepriceRequest, RepriceRun } from '../store/repricer.ts';
import type { Store } from '../store/store.ts';
import type { Team } from '../store/teams-and-keys.ts';
import { interruptedRun, repriceAll } from '../tools/reprice.ts';
import { storeFlags } from './command.ts';
import type { Call, Command } from './command.ts';
import { operatorName } from './price-flags.ts';
import { openProgress, openStopwatch } from './progress.ts';
import { alignColumns } from './table.ts';
import { UsageError } from './usage.ts';
import { chosenTeam, withStore } from './with-store.ts';

const name = 'reprice';

export const reprice: Command = {
  name,
  summary: 'Compute the costs of stored traces again',
  flags: {
    from: { help: 'the first day, or a time' },
    to: { help: 'the last day, or a time (excluded); today if left out' },
    model: { help: 'only calls of this model' },
    team: { help: 'only this team' },
    'only-uncosted': { type: 'boolean', help: 'only calls without a cost' },
    'include-client': {
      type: 'boolean',
      help: 'also costs that clients sent, if there is a price',
    },
    'dry-run': { type: 'boolean', help: 'show what would change, and change nothing' },
    ...storeFlags,
  },
  more:
    'Costs that were computed, or are missing, are computed again with the present prices (see "prices"). Costs that clients sent stay as\n' +
    'they are. Sums change together with the traces, so reports are right at every moment, and a server may run on the same database. If it\n' +
    'is interrupted, run the same command again: it continues. "prices history" lists what was changed, when and by whom. Days are those of\n' +
    'the time zone of each team.',
  examples: [
    'reprice --from 2026-11-01 --dry-run',
    'reprice --from 2026-11-01 --to 2026-11-30 --model my-model --team search',
    'reprice --from 2026-01-01 --only-uncosted',
  ],
  run(call) {
    const request = requestOf(call);
    return withStore(async (store, clock) => {
      const only = await chosenTeam(call, store);
      const teams = only === null ? await store.teams(clock()) : [only];
      // All ranges first: an error must not leave half of the teams done.
      const filters = new Map<string, RepriceFilter>();
      for (const { id } of teams) filters.set(id, await filterOf(store, id, request, clock()));
      const pricer = openPricer(new OwnPrices(await store.priceEntries()), await loadPriceList());
      const isDryRun = call.switches.has('dry-run');
      const seconds = openStopwatch();
      const newId = uuidV7(clock());
      const done: { team: Team; run: RepriceRun }[] = [];
      for (const team of teams) {
        const filter = filters.get(team.id);
        if (!filter) continue;
        const run = await startRun(call, store, team, {
          newId,
          request,
          filter,
          isDryRun,
          nowUs: clock(),
        });
        using progress = openProgress(`traces of ${team.name} looked at`);
        const onProgress = (count: number, total: number) => progress.show(count, total);
        done.push({
          team,
          run: await repriceAll(store, run, { pricer, isDryRun, clock, onProgress }),
        });
      }
      report(call, done, isDryRun, seconds());
    })(call);
  },
};

function requestOf({ flags, switches }: Call): RepriceRequest {
  const { from = null, to = null, model = null } = flags;
  if (from === null) {
    throw new UsageError('--from is missing. Give the first day, such as 2026-11-01.', name);
  }
  const onlyUncosted = switches.has('only-uncosted');
  const includeClient = switches.has('include-client');
  if (onlyUncosted && includeClient) {
    throw new UsageError('Use either --only-uncosted or --include-client.', name);
  }
  return { from, to, model, onlyUncosted, includeClient };
}

async function filterOf(
  store: Store,
  teamId: string,
  { from, to, model, onlyUncosted, includeClient }: RepriceRequest,
  nowUs: number,
): Promise<RepriceFilter> {
  const text = { from: from ?? undefined, to: to ?? undefined };
  const calendar = calendarOf(await store.timeZone(teamId));
  const answer = readRange(text, calendar, nowUs, 'instant');
  if (answer.kind === 'invalid') {
    const problems = answer.errors.map(({ field, message }) => `--${field} ${message}.`);
    throw new UsageError(problems.join('\n'), name);
  }
  const { fromUs = null, toUs = null } = answer.range ?? {};
  const scope = onlyUncosted ? 'uncosted' : includeClient ? 'all' : 'computed';
  return { fromUs, toUs, model, scope };
}

interface NewRun {
  newId: string;
  request: RepriceRequest;
  filter: RepriceFilter;
  isDryRun: boolean;
  nowUs: number;
}

/** An interrupted run of the same request, or a new one. */
async function startRun(
  call: Call,
  store: Store,
  team: Team,
  { newId, request, filter, isDryRun, nowUs }: NewRun,
): Promise<RepriceRun> {
  const interrupted = isDryRun ? null : await interruptedRun(store, team.id, request);
  if (interrupted) {
    call.hint(`Team ${team.name}: continuing the run that was interrupted.`);
    return interrupted;
  }
  const { firstSeq, lastSeq } = await store.counter(team.id);
  const run: RepriceRun = {
    id: newId,
    teamId: team.id,
    startedAtUs: nowUs,
    finishedAtUs: null,
    runBy: operatorName(),
    request,
    filter,
    doneSeq: firstSeq - 1,
    lastSeq,
    result: new RepriceResult(limits.repriceModelsMax),
  };
  if (!isDryRun) await store.addRepriceRun(run);
  return run;
}

function report(
  call: Call,
  done: readonly { team: Team; run: RepriceRun }[],
  isDryRun: boolean,
  seconds: number,
): void {
  const teams = done.map(({ team, run: { id, result } }) => ({
    team: team.name,
    run: isDryRun ? null : id,
    ...shownSums(result.total()),
    models: result.models().map((sums) => ({ model: sums.model, ...shownSums(sums) })),
  }));
  const tables = done
    .filter(({ run }) => run.result.total().traces > 0)
    .map(({ team, run }) => `Team ${team.name}\n${modelTable(run.result)}`);
  const traces = teams.reduce((sum, team) => sum + team.traces, 0);
  const changed = teams.reduce((sum, team) => sum + team.changed, 0);
  const verb = isDryRun ? 'would change' : 'changed';
  const last = `${changed} of ${traces} costs ${verb}, in ${seconds} s.`;
  call.print({ dry_run: isDryRun, seconds, teams }, [...tables, last].join('\n\n'));
}

/** Costs are text, since JSON numbers may lose digits. */
export function shownSums(sums: ModelResult) {
  return {
    traces: sums.traces,
    changed: sums.changed,
    uncosted_before: sums.uncostedBefore,
    uncosted_after: sums.uncostedAfter,
    before_usd: formatExactDollars(sums.before),
    after_usd: formatExactDollars(sums.after),
    difference_usd: signedDollars(sums.after - sums.before),
  };
}

function signedDollars(picos: bigint): string {
  return picos < 0n ? `-${formatExactDollars(-picos)}` : formatExactDollars(picos);
}

function modelTable(result: RepriceResult): string {
  const row = (label: string, sums: ModelResult): string[] => [
    label,
    ...Object.values(shownSums(sums)).map(String),
  ];
  return alignColumns([
    [
      'MODEL',
      'TRACES',
      'CHANGED',
      'NO COST BEFORE',
      'AFTER',
      'USD BEFORE',
      'USD AFTER',
      'DIFFERENCE',
    ],
    ...result.models().map((sums) => row(sums.model ?? '(other models)', sums)),
    row('(all)', result.total()),
  ]);
}
