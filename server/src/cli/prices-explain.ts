import { formatTimestamp } from '../core/clock.ts';
import { formatExactDollars } from '../core/money.ts';
import { explainCost, reasonWithoutCost } from '../core/prices/explanation.ts';
import type { Explanation } from '../core/prices/explanation.ts';
import { loadPriceList } from '../core/prices/load-price-list.ts';
import { OwnPrices } from '../core/prices/own-prices.ts';
import { openPricer } from '../core/prices/pricer.ts';
import type { PricedCall } from '../core/prices/pricer.ts';
import { dollarsPerMillion, dollarsPerRequest } from '../core/prices/rates.ts';
import type { TokenCounts } from '../core/prices/rates.ts';
import { parseTimestamp } from '../core/timestamp.ts';
import { OperatorError } from '../errors.ts';
import { explanationJson } from '../http/cost-json.ts';
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
    const explanation = explainCost(pricer, list, asked);
    call.print(
      explanationJson(explanation),
      [
        `A call of ${formatTimestamp(asked.us)}`,
        ...explanation.steps.map((step, i) => `${i + 1}. ${step}`),
        ...formula(explanation),
      ].join('\n'),
    );
  }),
};

function formula(explanation: Explanation): string[] {
  const { parts, picos } = explanation;
  if (parts === null || picos === null) {
    const isUncounted = reasonWithoutCost(explanation) === 'tokens_unknown';
    return [isUncounted ? 'Without --tokens no cost is computed.' : 'The call has no cost.'];
  }
  const rows = parts.map(({ kind, count, price, above }) =>
    kind === 'request'
      ? [String(count), 'request', `x $${dollarsPerRequest(price)}`]
      : [
          String(count),
          `${words(kind)} tokens`,
          `x $${dollarsPerMillion(price)} per million${above === null ? '' : ` (more than ${above} input tokens)`}`,
        ],
  );
  const total = `Cost: $${formatExactDollars(picos)}`;
  return rows.length === 0 ? [total] : [alignColumns(rows, '   '), total];
}

/** `cacheRead` as words. */
function words(kind: string): string {
  return kind.replaceAll(/[A-Z0-9]+/g, (part) => ` ${part.toLowerCase()}`);
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
