import { userInfo } from 'node:os';
import { dayOf } from '../core/clock.ts';
import type { OwnRates } from '../core/prices/own-prices.ts';
import { sinceEver } from '../core/prices/own-prices.ts';
import { dollarsPerMillion, perMillionTokens } from '../core/prices/rates.ts';
import { parseTimestamp } from '../core/timestamp.ts';
import { OperatorError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { Call, Flag } from './command.ts';

/** The prices of a model by the names of their flags. */
export const rateFlags: Readonly<Record<keyof OwnRates, string>> = {
  input: 'input',
  output: 'output',
  cacheRead: 'cache-read',
  cacheWrite: 'cache-write',
  reasoning: 'reasoning',
};

/** Which price: for all teams or one, from which day on. */
export const placeFlags: Readonly<Record<string, Flag>> = {
  from: { help: 'the first day on which it applies, in UTC; without it, on every day' },
  team: { help: 'only for this team' },
};

const picoUnits = 1_000_000n;

/** Dollars per million tokens as pico-dollars per token. */
export function parsePrice(flag: string, text: string): number {
  const isDecimal = /^[0-9]{1,6}(\.[0-9]{1,6})?$/.test(text);
  const price = isDecimal ? Number(perMillionTokens(text) / picoUnits) : NaN;
  if (price <= limits.ownPriceUsdMax * 1_000_000) return price;
  throw new OperatorError(
    `--${flag} must be US dollars per million tokens from 0 to ${limits.ownPriceUsdMax}, with at most six decimals, such as 2.5.`,
  );
}

/** A price as dollars per million tokens. */
export function formatPrice(picos: number | null): string | null {
  return picos === null ? null : dollarsPerMillion(BigInt(picos) * picoUnits);
}

/** `2026-01-01` as days since 1970. */
export function parseDay(flag: string, text: string | undefined): number {
  if (text === undefined) return sinceEver;
  const us = /^\d{4}-\d{2}-\d{2}$/.test(text) ? parseTimestamp(`${text}T00:00:00Z`) : null;
  if (us !== null && us >= 0) return dayOf(us);
  throw new OperatorError(`--${flag} must be a date, such as 2026-01-01.`);
}

/** A model's name, as in a trace. */
export function checkModel(name: string): string {
  const chars = Array.from(name).length;
  if (chars >= 1 && chars <= limits.labelCharsMax && !/\p{Cc}/u.test(name))
    return name.toWellFormed();
  throw new OperatorError(
    `MODEL must have 1 to ${limits.labelCharsMax} characters, and no control characters.`,
  );
}

/** All prices of a model. Those of its input and output are needed. */
export function ratesOf({ flags }: Call): OwnRates {
  const price = (kind: keyof OwnRates): number | null => {
    const text = flags[rateFlags[kind]];
    return text === undefined ? null : parsePrice(rateFlags[kind], text);
  };
  const [input, output] = [price('input'), price('output')];
  if (input === null || output === null) {
    throw new OperatorError(
      '--input and --output are needed. Give US dollars per million tokens, such as --input 2.5 --output 10.',
    );
  }
  const [cacheRead, cacheWrite, reasoning] = [
    price('cacheRead'),
    price('cacheWrite'),
    price('reasoning'),
  ];
  return { input, output, cacheRead, cacheWrite, reasoning };
}

/** Who runs this command. Some containers have no name for their user. */
export function operatorName(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? 'unknown'}`;
  }
}
