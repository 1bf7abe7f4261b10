import { limits } from '../../limits.ts';
import { openPriceList } from './price-list.ts';
import type { PriceList, PricePackage } from './price-list.ts';

let loading: Promise<PriceList> | null = null;

/** Loads the price list that is part of this installation, once. It takes about 50 ms, so it is not loaded at the start of every command. */
export function loadPriceList(): Promise<PriceList> {
  return (loading ??= import('@pydantic/genai-prices').then((list) =>
    openPriceList(list as unknown as PricePackage, limits.pricesKeptMax),
  ));
}
