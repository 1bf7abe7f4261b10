import type { OwnRates, PriceEntry } from '../core/prices/own-prices.ts';
import { OperatorError } from '../errors.ts';
import { limits } from '../limits.ts';

/** The prices that operators have set. */
export interface PriceDirectory {
  /** The highest number of an entry; 0 if there is none. If it is the same as before, no price has changed. */
  lastPriceNo(): Promise<number>;
  priceEntries(): Promise<readonly PriceEntry[]>;
  /** Replaces the entry of the same team, model and day. */
  setPrice(entry: Omit<PriceEntry, 'no'>): Promise<void>;
}

type Row = Readonly<Record<string, unknown>>;

/** PostgreSQL returns large integers as text. They stay far below 2^53. */
export function priceFromRow(row: Row): PriceEntry {
  const optional = (name: string): number | null => (row[name] === null ? null : Number(row[name]));
  const input = optional('input');
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
            cacheRead: optional('cache_read'),
            cacheWrite: optional('cache_write'),
            reasoning: optional('reasoning'),
          },
    setAtUs: Number(row['set_at_us']),
    setBy: row['set_by'] as string,
  };
}

/** In the order of the columns. */
export function ratesOfEntry({ rates }: Pick<PriceEntry, 'rates'>): (number | null)[] {
  const { input, output, cacheRead, cacheWrite, reasoning }: Partial<OwnRates> = rates ?? {};
  return [input, output, cacheRead, cacheWrite, reasoning].map((price) => price ?? null);
}

export function tooManyPrices(): OperatorError {
  return new OperatorError(
    `There are already ${limits.ownPricesMax} prices. Remove some with "prices unset" first.`,
  );
}
