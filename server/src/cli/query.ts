import { breakdownFields, filterFields } from '../core/dimensions.ts';
import { metadataPrefix } from '../core/question.ts';
import type { SentParameters } from '../core/question.ts';
import { Failure, OperatorError } from '../errors.ts';
import type { FieldError } from '../errors.ts';
import { reportJson } from '../http/analytics-json.ts';
import { askReport } from '../http/report.ts';
import type { Store } from '../store/store.ts';
import type { Team } from '../store/teams-and-keys.ts';
import { storeFlags } from './command.ts';
import type { Call, Command, Flag } from './command.ts';
import { reportCsv, reportTable } from './report-text.ts';
import { UsageError } from './usage.ts';
import { chosenTeam, withStore } from './with-store.ts';

const name = 'query';

/** Flags have the names of the parameters of the API, with dashes. */
const flagOf = (parameter: string): string => parameter.replaceAll('_', '-');

const filterFlags: Record<string, Flag> = Object.fromEntries(
  filterFields.map((field) => [
    flagOf(field),
    { help: field === 'status' ? 'only success or error' : `only calls with this ${field}` },
  ]),
);

const questionFlags: Record<string, Flag> = {
  'group-by': { help: 'one or two fields, such as model or model,status' },
  interval: { help: 'hour, day, week or month' },
  last: { help: 'the last hours or days, such as 24h or 30d' },
  from: { help: 'the first day, or a time' },
  to: { help: 'the last day, or a time (excluded)' },
  order: { help: 'a measure; with - for descending: --order=-call_count (-total_cost_usd)' },
  limit: { help: 'number of groups; the others are added up (100)' },
  fill: { help: 'zero: also print intervals without calls' },
  ...filterFlags,
  metadata: { help: 'only calls with this entry, as NAME=VALUE' },
};

/** `GET /analytics/query` for operators: it reads the store without a server and without an API key. */
export const query: Command = {
  name,
  summary: 'Print cost, calls, errors and latency, grouped in any way',
  flags: {
    team: { help: 'the team; not needed if there is only one' },
    ...questionFlags,
    csv: { type: 'boolean', help: 'print the rows as CSV, with all measures' },
    ...storeFlags,
  },
  more:
    'Days and hours are those of the time zone of the team. An empty value, such as --provider=, means: not set. Nothing is\n' +
    'changed, and a server may run on the same database. With --json it prints what GET /analytics/query returns.',
  examples: [
    'query --group-by model --last 30d',
    `query --group-by ${breakdownFields.user} --from 2026-11-01 --to 2026-11-30 --limit 10 --csv`,
    'query --interval day --last 7d --status error',
  ],
  async run(call) {
    const sent = parametersOf(call);
    await checkForms(sent);
    if (call.switches.has('csv') && call.switches.has('json')) {
      throw new UsageError('Use either --csv or --json.', name);
    }
    await withStore(async (store, clock) => {
      const team = await teamOf(call, store);
      const answered = await askReport(store, team.id, sent, clock()).catch(explain);
      const shown = call.switches.has('csv') ? reportCsv(answered) : reportTable(answered);
      call.print(exactly(reportJson(answered)), shown);
    })(call);
  },
};

async function teamOf(call: Call, store: Store): Promise<Team> {
  const chosen = await chosenTeam(call, store);
  if (chosen) return chosen;
  const [only, ...others] = await store.teams(0);
  if (only && others.length === 0) return only;
  throw new OperatorError(
    only
      ? `Choose a team with --team. To list the teams, run: ${call.line('teams', 'list')}`
      : 'There are no teams in this database.',
  );
}

/** The parameters of the API. */
function parametersOf({ flags }: Call): SentParameters {
  const sent: Record<string, string> = {};
  for (const [flag, value] of Object.entries(flags)) {
    if (value === undefined || !Object.hasOwn(questionFlags, flag)) continue;
    if (flag !== 'metadata') {
      sent[flag.replaceAll('-', '_')] = value;
      continue;
    }
    const [entry = '', text] = value.split(/=(.*)/s);
    if (entry === '' || text === undefined) {
      throw new UsageError('--metadata must have the form NAME=VALUE.', name);
    }
    sent[`${metadataPrefix}${entry}`] = text;
  }
  return sent;
}

/** As the API does. */
async function checkForms(sent: SentParameters): Promise<void> {
  // Loaded only here: with the library for schemas, every command would take three times as long to start.
  const { ReportQuery } = await import('../http/parameters.ts');
  const forms = ReportQuery.properties as Readonly<
    Record<string, { pattern?: string; rule?: string }>
  >;
  const problems = Object.entries(sent).flatMap(([field, value]): FieldError[] => {
    const { pattern, rule = 'is not valid' } = forms[field] ?? {};
    const isFine = pattern === undefined || new RegExp(pattern, 'u').test(String(value));
    return isFine ? [] : [{ field, message: rule }];
  });
  if (problems.length > 0) throw usageError(problems);
}

function explain(error: unknown): never {
  const isInvalid = error instanceof Failure && error.code === 'invalid_input';
  throw isInvalid ? usageError(error.details.errors ?? []) : error;
}

function usageError(problems: readonly FieldError[]): UsageError {
  const lines = problems.map(({ field, message }) => {
    const about = message.replace(
      /^(must be combined with) (\w+)$/,
      (_, words, other) => `${words} --${flagOf(other)}`,
    );
    return `--${flagOf(field)} ${about}.`;
  });
  return new UsageError(lines.join('\n'), name);
}

/** Numbers are printed with all their digits. */
function exactly(json: string): unknown {
  return JSON.parse(json, (_key, value, { source }) =>
    typeof value === 'number' ? JSON.rawJSON(source) : value,
  );
}
