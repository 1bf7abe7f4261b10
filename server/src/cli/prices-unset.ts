import { livePrices } from '../core/prices/own-prices.ts';
import { OperatorError } from '../errors.ts';
import { storeFlags } from './command.ts';
import type { Command } from './command.ts';
import { operatorName, parseDay, placeFlags } from './price-flags.ts';
import { chosenTeam, withStore } from './with-store.ts';

export const pricesUnset: Command = {
  name: 'prices unset',
  summary: 'Remove a price that was set',
  words: ['MODEL'],
  flags: { ...placeFlags, ...storeFlags },
  more: 'Removes the price with exactly this model, first day and team. Costs of stored traces do not change.',
  examples: ['prices unset gpt-4o --from 2026-01-01 --team search'],
  run(call) {
    const [model = ''] = call.words;
    const fromDay = parseDay('from', call.flags['from']);
    return withStore(async (store, clock) => {
      const team = await chosenTeam(call, store);
      const teamId = team?.id ?? null;
      const isThere = livePrices(await store.priceEntries()).some(
        (price) => price.model === model && price.teamId === teamId && price.fromDay === fromDay,
      );
      if (!isThere) {
        const list = call.line('prices', 'list');
        throw new OperatorError(
          `There is no such price of "${model}". To list the prices with their teams and days, run: ${list}`,
        );
      }
      const setBy = operatorName();
      await store.setPrice({ teamId, model, fromDay, rates: null, setAtUs: clock(), setBy });
      call.print(
        { model, team: team?.name ?? null, from: call.flags['from'] ?? null },
        `The price of "${model}" was removed.`,
      );
    })(call);
  },
};
