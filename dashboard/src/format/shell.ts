/** Words of commands that a user pastes into a POSIX shell. Names are recorded by apps, so they may be hostile text. */

/** In single quotes, the shell interprets nothing except the quote itself. */
export function inShell(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Quoted only if the shell would read it in another way. */
export function shellWord(text: string): string {
  return isPlain(text) ? text : inShell(text);
}

/** A flag with its value. An equals sign for the unusual ones, since a value may start with a dash. */
export function flagWord(flag: string, value: string): string {
  return isPlain(value) ? `--${flag} ${value}` : `--${flag}=${inShell(value)}`;
}

/** A tilde or a dash at the beginning has a meaning. */
function isPlain(text: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9_.:/@-]*$/.test(text);
}
