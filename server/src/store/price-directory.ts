import type { OwnRates, PriceEntry } from '../core/prices/own-prices.ts';
import { OperatorError } from '../errors.ts';
import { limits } from '../limits.ts';
import { numberOrNull, statement } from './sql.ts';
import type { Row, Sql } from './sql.ts';

/** The prices that operators have set. */
export interface PriceDirectory {
  /** The highest number of an entry; 0 if there is none. If it is the same as before, no price has changed. */
  lastPriceNo(): Promise<number>;
  priceEntries(): Promise<readonly PriceEntry[]>;
  /** Replaces the entry of the same team, model and day. */
  setPrice(entry: Omit<PriceEntry, 'no'>): Promise<void>;
}

const columns =
  'no, team_id, model, from_day, input, output, cache_read, cache_write, reasoning, set_at_us, set_by';

export function openPrices(sql: Sql): PriceDirectory {
  return {
    async lastPriceNo() {
      const [row] = await sql.all('select coalesce(max(no), 0) as no from price_entries');
      return Number(row?.['no']);
    },
    async priceEntries() {
      return (await sql.all(`select ${columns} from price_entries order by no`)).map(priceFromRow);
    },
    // Two operators at once would choose the same number.
    setPrice: (entry) =>
      sql.transaction(function* () {
        const { teamId, model, fromDay, setAtUs, setBy } = entry;
        const [last] = (yield statement(
          'select coalesce(max(no), 0) as no, count(input) as prices from price_entries',
        )).rows;
        // Also entries of removed prices: the new entry has a higher number.
        const { changes } = yield statement(
          `delete from price_entries
           where input is null or (team_id is not distinct from ?1 and model = ?2 and from_day = ?3)`,
          [teamId, model, fromDay],
        );
        if (changes === 0 && Number(last?.['prices']) >= limits.ownPricesMax) throw tooManyPrices();
        yield statement(
          `insert into price_entries (${columns}) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)`,
          [Number(last?.['no']) + 1, teamId, model, fromDay, ...ratesOf(entry), setAtUs, setBy],
        );
      }, 'price_entries'),
  };
}

function priceFromRow(row: Row): PriceEntry {
  const input = numberOrNull(row['input']);
  return {
    no: Number(row['no']),
    teamId: row['team_id'] as string | null,
    model: row['model'] as string,
    fromDay: row['from_day'] as number,
    rates:
      input === null
        ? null
        : {
            input,
            output: Number(row['output']),
            cacheRead: numberOrNull(row['cache_read']),
            cacheWrite: numberOrNull(row['cache_write']),
            reasoning: numberOrNull(row['reasoning']),
          },
    setAtUs: Number(row['set_at_us']),
    setBy: row['set_by'] as string,
  };
}

/** In the order of the columns. */
function ratesOf({ rates }: Pick<PriceEntry, 'rates'>): (number | null)[] {
  const { input, output, cacheRead, cacheWrite, reasoning }: Partial<OwnRates> = rates ?? {};
  return [input, output, cacheRead, cacheWrite, reasoning].map((price) => price ?? null);
}

function tooManyPrices(): OperatorError {
  return new OperatorError(
    `There are already ${limits.ownPricesMax} prices. Remove some with "prices unset" first.`,
  );
}
