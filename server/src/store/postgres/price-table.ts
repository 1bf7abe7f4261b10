import { limits } from '../../limits.ts';
import { priceFromRow, ratesOfEntry, tooManyPrices } from '../price-directory.ts';
import type { PriceDirectory } from '../price-directory.ts';
import { ask, inTransaction, run } from './connection.ts';
import type { Pools } from './connection.ts';
import { ofSmallTables } from './statements.ts';

export function openPriceTable({ reading, writing, begin }: Pools): PriceDirectory {
  return {
    async lastPriceNo() {
      const [row] = await ask(reading, ofSmallTables.readLastPriceNo, []);
      return Number(row?.['no']);
    },
    async priceEntries() {
      return (await ask(reading, ofSmallTables.readPrices, [])).map(priceFromRow);
    },
    setPrice(entry) {
      const { teamId, model, fromDay, setAtUs, setBy } = entry;
      return inTransaction(writing, begin, async (client) => {
        // Two operators at once would choose the same number.
        await run(client, ofSmallTables.lockPrices);
        const { rows } = await run(client, ofSmallTables.readPrices);
        const last = rows.at(-1)?.['no'] ?? 0;
        const { rowCount } = await run(client, ofSmallTables.removePrices, [
          teamId,
          model,
          fromDay,
        ]);
        if (rowCount === 0 && rows.length >= limits.ownPricesMax) throw tooManyPrices();
        const values = [Number(last) + 1, teamId, model, fromDay, ...ratesOfEntry(entry)];
        await run(client, ofSmallTables.addPrice, [...values, setAtUs, setBy]);
      });
    },
  };
}
