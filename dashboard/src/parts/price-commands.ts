import { flagWord, shellWord } from '../format/shell.ts';

/** Sets a price. `USD` is for the reader to replace: the command does not accept it, so no wrong price is set by accident. */
export function setPriceWords(model: string): string[] {
  const prices = ['--input USD', '--output USD'];
  const name = shellWord(model);
  // After two dashes, a name that begins with a dash is not taken for a flag.
  const rest = model.startsWith('-') ? [...prices, '--', name] : [name, ...prices];
  return ['tracetally prices set', ...rest];
}

interface RepriceWishes {
  team: string;
  /** The first and the last day in the time zone of the team. */
  from: string;
  to?: string;
  model?: string;
  isOnlyUncosted?: boolean;
}

/** Computes costs of this team again. */
export function repriceWords({ team, from, to, model, isOnlyUncosted }: RepriceWishes): string[] {
  return [
    'tracetally reprice',
    flagWord('from', from),
    ...(to === undefined ? [] : [flagWord('to', to)]),
    ...(model === undefined ? [] : [flagWord('model', model)]),
    flagWord('team', team),
    ...(isOnlyUncosted === true ? ['--only-uncosted'] : []),
  ];
}
