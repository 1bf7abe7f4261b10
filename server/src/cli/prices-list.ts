import { formatDay, formatTimestamp } from '../core/clock.ts';
import { livePrices, sinceEver } from '../core/prices/own-prices.ts';
import type { OwnRates } from '../core/prices/own-prices.ts';
import { storeFlags } from './command.ts';
import type { Command } from './command.ts';
import { formatPrice, rateFlags } from './price-flags.ts';
import { printList } from './table.ts';
import { withStore } from './with-store.ts';

export const pricesList: Command = {
  name: 'prices list',
  summary: 'List the prices that were set',
  flags: storeFlags,
  more: 'Prices are US dollars per million tokens. Models that are not listed have the price of the built-in list: see "prices explain".',
  run: withStore(async (store, clock, call) => {
    const names = new Map((await store.teams(clock())).map(({ id, name }) => [id, name]));
    const prices = livePrices(await store.priceEntries())
      .map((price) => ({
        ...price,
        team: price.teamId === null ? null : (names.get(price.teamId) ?? null),
      }))
      .sort(
        (a, b) =>
          compare(a.model, b.model) || compare(a.team ?? '', b.team ?? '') || a.fromDay - b.fromDay,
      );
    const rate = (kind: keyof OwnRates) => {
      const name = rateFlags[kind].replace('-', '_');
      const value = ({ rates }: (typeof prices)[number]) => formatPrice(rates[kind]);
      return [name.replace('_', ' ').toUpperCase(), name, value] as const;
    };
    printList(call, prices, [
      ['MODEL', 'model', ({ model }) => model],
      ['TEAM', 'team', ({ team }) => team],
      ['FROM', 'from', ({ fromDay }) => (fromDay === sinceEver ? null : formatDay(fromDay))],
      ...(Object.keys(rateFlags) as (keyof OwnRates)[]).map(rate),
      ['SET', 'set_at', ({ setAtUs }) => formatTimestamp(setAtUs)],
      ['BY', 'set_by', ({ setBy }) => setBy],
    ]);
  }),
};

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
