import type { PriceEntry } from '../../src/core/prices/own-prices.ts';
import type { PriceDirectory } from '../../src/store/price-directory.ts';
import { us } from './service.ts';

/** US dollars per million tokens. */
export interface OwnPriceUsd {
  input: number;
  output: number;
  cacheRead?: number;
}

/** Sets a price as `tracetally prices set` does; null removes it. */
export async function setOwnPrice(
  store: PriceDirectory,
  model: string,
  price: OwnPriceUsd | null,
  place: Partial<Pick<PriceEntry, 'teamId' | 'fromDay'>> = {},
): Promise<void> {
  const picos = (usd: number): number => usd * 1_000_000;
  await store.setPrice({
    teamId: null,
    fromDay: 0,
    ...place,
    model,
    rates: price && {
      input: picos(price.input),
      output: picos(price.output),
      cacheRead: price.cacheRead === undefined ? null : picos(price.cacheRead),
      cacheWrite: null,
      reasoning: null,
    },
    setAtUs: us('2026-01-01'),
    setBy: 'operator',
  });
}
