import { formatDay, formatTimestamp } from '../core/clock.ts';
import { formatExactDollars } from '../core/money.ts';
import { loadPriceList } from '../core/prices/load-price-list.ts';
import { OwnPrices, sinceEver } from '../core/prices/own-prices.ts';
import type { PriceEntry } from '../core/prices/own-prices.ts';
import type { PriceList } from '../core/prices/price-list.ts';
import { openPricer } from '../core/prices/pricer.ts';
import type { Lookup, PricedCall, Quote } from '../core/prices/pricer.ts';
import { costParts, dollarsPerMillion, dollarsPerRequest } from '../core/prices/rates.ts';
import type { CostPart, TokenCounts } from '../core/prices/rates.ts';
import { parseTimestamp } from '../core/timestamp.ts';
import { OperatorError } from '../errors.ts';
import { limits } from '../limits.ts';
import { storeFlags } from './command.ts';
import type { Command } from './command.ts';
import { checkModel, rateFlags } from './price-flags.ts';
import { alignColumns } from './table.ts';
import { chosenTeam, withStore } from './with-store.ts';

export const pricesExplain: Command = {
  name: 'prices explain',
  summary: 'Show which price a call has, and why',
  words: ['MODEL'],
  flags: {
    tokens: { help: 'such as input=1000,output=100,cache-read=800,cache-write=0,reasoning=50' },
    provider: { help: 'the provider of the call' },
    'response-model': { help: 'the exact model that answered' },
    team: { help: 'with the prices of this team' },
    at: { help: 'when the call began, as a date or an RFC 3339 time (now)' },
    ...storeFlags,
  },
  more: 'Looks for the price in the same way as the server does. Input tokens include cached ones, and output tokens those for reasoning.',
  examples: [
    'prices explain gpt-4o --provider openai --tokens input=1000,cache-read=800,output=100',
    'prices explain my-deployment --response-model gpt-4o-2024-08-06 --provider azure.ai.openai',
  ],
  run: withStore(async (store, clock, call) => {
    const team = await chosenTeam(call, store);
    const asked: PricedCall = {
      teamId: team?.id ?? null,
      provider: call.flags['provider'] ?? null,
      exactModel: call.flags['response-model'] ?? null,
      model: checkModel(call.words[0] ?? ''),
      us: parseMoment(call.flags['at']) ?? clock(),
      tokens: parseTokens(call.flags['tokens']),
    };
    const entries = await store.priceEntries();
    const list = await loadPriceList();
    const pricer = openPricer(new OwnPrices(entries), list);
    const steps: string[] = [];
    let found: Quote | null = null;
    for (const lookup of pricer.lookups(asked)) {
      found = lookup.find();
      steps.push(...stepsOf(lookup, found, asked, list));
      if (found) break;
    }
    const parts = found && costParts(found.rates, asked.tokens);
    const picos = pricer.cost(asked);
    call.print(
      {
        at: formatTimestamp(asked.us),
        steps,
        price: found && shownQuote(found),
        parts: parts?.map(shownPart) ?? null,
        total_usd: picos === null ? null : Number(formatExactDollars(picos)),
      },
      [
        `A call of ${formatTimestamp(asked.us)}`,
        ...steps.map((step, i) => `${i + 1}. ${step}`),
        ...formula(parts, picos, hasTokens(asked.tokens)),
      ].join('\n'),
    );
  }),
};

function stepsOf(
  { source, name }: Lookup,
  found: Quote | null,
  { provider, us }: PricedCall,
  list: PriceList,
): string[] {
  if (source === 'own') {
    return [`Own prices: "${name}": ${found?.source === 'own' ? ownText(found.own) : 'none'}`];
  }
  const attempts = list.attempts(provider, name, us);
  if (attempts.length === 0) {
    return [`Price list: the provider "${provider}" is not in it, so "${name}" has no price`];
  }
  return attempts.map((attempt) => {
    const seller =
      attempt.provider === null ? 'the provider that its name tells' : attempt.provider;
    const price = attempt.found && `${attempt.found.provider}, model ${attempt.found.model}`;
    return `Price list: "${attempt.model}" of ${seller}: ${price ?? 'none'}`;
  });
}

function ownText({ teamId, fromDay }: PriceEntry): string {
  const place = teamId === null ? 'for all teams' : 'for this team';
  return fromDay === sinceEver ? place : `${place}, from ${formatDay(fromDay)} on`;
}

function shownQuote(found: Quote): object {
  if (found.source === 'own') {
    const { teamId, fromDay } = found.own;
    const from = fromDay === sinceEver ? null : formatDay(fromDay);
    return { source: 'own', model: found.name, team_id: teamId, from };
  }
  const { provider, model } = found.listed;
  return { source: 'list', provider, model };
}

function shownPart({ kind, count, price }: CostPart): object {
  return kind === 'request'
    ? { kind, count, usd_per_request: Number(dollarsPerRequest(price)) }
    : { kind, count, usd_per_million: Number(dollarsPerMillion(price)) };
}

function formula(parts: CostPart[] | null, picos: bigint | null, isCounted: boolean): string[] {
  if (parts === null || picos === null) {
    return [isCounted ? 'The call has no cost.' : 'Without --tokens no cost is computed.'];
  }
  const rows = parts.map(({ kind, count, price }) =>
    kind === 'request'
      ? [String(count), 'request', `x $${dollarsPerRequest(price)}`]
      : [String(count), `${words(kind)} tokens`, `x $${dollarsPerMillion(price)} per million`],
  );
  const total = `Cost: $${formatExactDollars(picos)}`;
  return rows.length === 0 ? [total] : [alignColumns(rows, '   '), total];
}

/** `cacheRead` as words. */
function words(kind: string): string {
  return kind.replaceAll(/[A-Z0-9]+/g, (part) => ` ${part.toLowerCase()}`);
}

function hasTokens({ input, output }: TokenCounts): boolean {
  return input !== undefined || output !== undefined;
}

export function parseMoment(text: string | undefined): number | null {
  if (text === undefined) return null;
  const us = parseTimestamp(text.length === 10 ? `${text}T00:00:00Z` : text);
  if (us !== null && us >= 0) return us;
  throw new OperatorError('--at must be a date or an RFC 3339 time, such as 2026-11-04T09:30:00Z.');
}

export function parseTokens(text: string | undefined): TokenCounts {
  const counts: Record<string, number> = {};
  for (const entry of text?.split(',') ?? []) {
    const [name, digits = ''] = entry.split('=');
    const kind = Object.entries(rateFlags).find(([, flag]) => flag === name)?.[0];
    const count = /^[0-9]{1,10}$/.test(digits) ? Number(digits) : NaN;
    if (kind === undefined || !(count <= limits.countMax)) {
      throw new OperatorError(
        `--tokens must be counts of ${Object.values(rateFlags).join(', ')}, such as input=1000,output=100.`,
      );
    }
    counts[kind] = count;
  }
  return counts;
}
