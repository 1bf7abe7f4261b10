import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { limits } from '../../limits.ts';
import { priceFromRow, ratesOfEntry, tooManyPrices } from '../price-directory.ts';
import type { PriceDirectory } from '../price-directory.ts';
import { retryWhileBusy } from './connection.ts';

export function openPriceTable(db: DatabaseSync, reading: DatabaseSync): PriceDirectory {
  const readLast = reading.prepare('select coalesce(max(no), 0) as no from price_entries');
  const readAll = `
    select p.no, t.id as team_id, p.model, p.from_day, p.input, p.output, p.cache_read, p.cache_write,
      p.reasoning, p.set_at_us, p.set_by
    from price_entries p left join teams t on t.no = p.team_no order by p.no`;

  return {
    async lastPriceNo() {
      return readLast.get()?.['no'] as number;
    },
    async priceEntries() {
      return reading.prepare(readAll).all().map(priceFromRow);
    },
    async setPrice(entry) {
      const { teamId, model, fromDay, setAtUs, setBy } = entry;
      await retryWhileBusy(db, () => {
        const { no, count } = db
          .prepare(
            'select coalesce(max(no), 0) + 1 as no, count(input) as count from price_entries',
          )
          .get() as { no: number; count: number };
        const teamNo = teamNoOf(db, teamId);
        // Also what is left of prices that were removed: the new entry has a higher number.
        const { changes } = db
          .prepare(
            'delete from price_entries where input is null or (team_no is ? and model = ? and from_day = ?)',
          )
          .run(teamNo, model, fromDay);
        if (changes === 0 && count >= limits.ownPricesMax) throw tooManyPrices();
        db.prepare(
          `insert into price_entries
             (no, team_no, model, from_day, input, output, cache_read, cache_write, reasoning, set_at_us, set_by)
           values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        ).run(no, teamNo, model, fromDay, ...ratesOfEntry(entry), setAtUs, setBy);
      });
    },
  };
}

function teamNoOf(db: DatabaseSync, teamId: string | null): SQLInputValue {
  if (teamId === null) return null;
  const row = db.prepare('select no from teams where id = ?').get(teamId);
  if (!row) throw new Error(`there is no team ${teamId}`);
  return row['no'] as number;
}
