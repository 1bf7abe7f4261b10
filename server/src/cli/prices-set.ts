import { formatDay } from '../core/clock.ts';
import { sinceEver } from '../core/prices/own-prices.ts';
import type { OwnRates } from '../core/prices/own-prices.ts';
import { storeFlags } from './command.ts';
import type { Command } from './command.ts';
import {
  checkModel,
  formatPrice,
  operatorName,
  parseDay,
  placeFlags,
  rateFlags,
  ratesOf,
} from './price-flags.ts';
import { chosenTeam, withStore } from './with-store.ts';

export const pricesSet: Command = {
  name: 'prices set',
  summary: 'Set the price of a model',
  words: ['MODEL'],
  flags: {
    input: { help: 'US dollars per million input tokens' },
    output: { help: 'US dollars per million output tokens' },
    'cache-read': { help: 'of the input tokens, for those read from a cache (as --input)' },
    'cache-write': { help: 'of the input tokens, for those written to a cache (as --input)' },
    reasoning: { help: 'of the output tokens, for those spent on reasoning (as --output)' },
    ...placeFlags,
    ...storeFlags,
  },
  more:
    'It takes precedence over the price list for calls whose model, or exact model that answered, has this name. A running server uses it\n' +
    'within a second. Costs of stored traces do not change: to compute them again, use "reprice".',
  examples: [
    'prices set my-model --input 2.5 --output 10 --cache-read 1.25',
    'prices set gpt-4o --input 2 --output 8 --from 2026-01-01 --team search',
  ],
  run(call) {
    const model = checkModel(call.words[0] ?? '');
    const rates = ratesOf(call);
    const fromDay = parseDay('from', call.flags['from']);
    return withStore(async (store, clock) => {
      const team = await chosenTeam(call, store);
      const teamId = team?.id ?? null;
      const setBy = operatorName();
      await store.setPrice({ teamId, model, fromDay, rates, setAtUs: clock(), setBy });
      const from = fromDay === sinceEver ? null : formatDay(fromDay);
      const place = `${team ? `the team "${team.name}"` : 'all teams'}${from === null ? '' : `, from ${from} on`}`;
      call.print(
        { model, team: team?.name ?? null, from, ...shownRates(rates) },
        `The price of "${model}" is set for ${place}.`,
      );
    })(call);
  },
};

/** As dollars per million tokens, by the names of JSON. */
export function shownRates(rates: OwnRates): Record<string, number | null> {
  return Object.fromEntries(
    Object.entries(rateFlags).map(([kind, flag]) => {
      const price = formatPrice(rates[kind as keyof OwnRates]);
      return [flag.replace('-', '_'), price === null ? null : Number(price)];
    }),
  );
}
