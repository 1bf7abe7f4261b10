import { repeatedSettings } from '../config.ts';
import type { Call } from './command.ts';
import type { Program } from './program.ts';
import { flagWords, shellWord } from './shell-words.ts';

type Flags = Call['flags'];

/** A command line that can be pasted into the same shell, and that works on the same database. */
export function commandLine(program: Program, flags: Flags, words: readonly string[]): string {
  const [command, ...rest] = words;
  const start = command === 'serve' ? [program.serve] : [program.run, shellWord(command ?? '')];
  return [...start, ...rest.map(shellWord), ...databaseWords(flags)].join(' ');
}

function databaseWords(flags: Flags): string[] {
  return repeatedSettings(flags, 'database').flatMap(([flag, text]) =>
    // Terminals and service logs keep what is printed, so a password is not: the shell fills it in.
    hasPassword(text)
      ? [`--${flag}`, `"$TRACETALLY_DATABASE"`]
      : flagWords(flag, text).map(shellWord),
  );
}

/** The driver accepts addresses that are not valid URLs, such as that of a socket: they may hold a password, too. */
function hasPassword(text: string): boolean {
  if (!URL.canParse(text)) return /^postgres(ql)?:/.test(text);
  const { password, searchParams } = new URL(text);
  return password !== '' || searchParams.has('password');
}
