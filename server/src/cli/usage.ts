import { parseArgs } from 'node:util';
import { isWellFormedKey } from '../core/api-key.ts';
import { isWellFormedSignInCode } from '../core/sign-in-code.ts';
import type { Call, Command, Flag } from './command.ts';
import { closest } from './suggestion.ts';

/** The command line was not understood. The message says what is wrong. */
export class UsageError extends Error {
  /** The words between the program and `--help` that lead to the right help. */
  readonly helpAbout: readonly string[];

  constructor(problem: string, ...helpAbout: string[]) {
    super(problem);
    this.helpAbout = helpAbout;
  }
}

/** The commands whose names begin with this word, such as `keys`. */
export function groupOf(commands: readonly Command[], word: string): Command[] {
  return commands.filter(({ name }) => name.startsWith(`${word} `));
}

/** The command that these arguments name, and what follows its name. */
export function findCommand(
  commands: readonly Command[],
  args: readonly string[],
): { command: Command; rest: readonly string[] } {
  for (const wordCount of [2, 1]) {
    const name = args.slice(0, wordCount).join(' ');
    const command = commands.find((candidate) => candidate.name === name);
    if (command) return { command, rest: args.slice(wordCount) };
  }
  const standard = commandWithoutName(commands, args);
  if (standard) return { command: standard, rest: args };
  const [first = '', next = ''] = args;
  const second = next.startsWith('-') ? '' : next;
  if (first.startsWith('-')) {
    const flag = nameOfFlag(first);
    const meant = suggestion(flag, ['--help', '--version']);
    throw new UsageError(`Unknown flag ${flag}.${meant} Put the command first.`);
  }
  const group = groupOf(commands, first);
  if (group.length === 0) {
    const names = commands.flatMap(({ name }) => [name, name.split(' ')[0] ?? '']);
    const known = [...new Set([...names, 'help', '--version'])];
    const meant = suggestion(`${first} ${second}`, known) || suggestion(first, known);
    throw new UsageError(`Unknown command "${shown(first)}".${meant}`);
  }
  const names = group.map(({ name }) => name);
  if (second === '') {
    const either = `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
    throw new UsageError(`"${first}" is not a complete command. Use ${either}.`, first);
  }
  const meant = suggestion(`${first} ${second}`, names) || ` The commands are ${names.join(', ')}.`;
  throw new UsageError(`Unknown command "${first} ${shown(second)}".${meant}`, first);
}

/** Without the name of a command, the service is started: with the flags given, if all of them are its own. */
function commandWithoutName(
  commands: readonly Command[],
  args: readonly string[],
): Command | undefined {
  const serve = commands.find(({ name }) => name === 'serve');
  const isName = (arg: string): boolean => commands.some(({ name }) => name === arg);
  const isOwn = (flag: string): boolean => Object.hasOwn(serve?.flags ?? {}, flag.slice(2));
  const isStart = args[0] === undefined || (isOwn(nameOfFlag(args[0])) && !args.some(isName));
  return isStart ? serve : undefined;
}

export type ParsedCall = Pick<Call, 'flags' | 'switches' | 'words'>;

/** Flags and arguments of a command. `util.parseArgs` only splits them, so that errors have our own words. */
export function parseCall(command: Command, args: readonly string[]): ParsedCall {
  const misused = (problem: string) => new UsageError(problem, command.name);
  const options = Object.fromEntries(
    Object.entries(command.flags).map(([name, { type = 'string' as const }]) => [name, { type }]),
  );
  const { tokens } = parseArgs({
    args: [...args],
    options,
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  const flags: Record<string, string> = {};
  const switches = new Set<string>();
  const words: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value);
    if (token.kind !== 'option') continue;
    const flag = Object.hasOwn(command.flags, token.name) ? command.flags[token.name] : null;
    if (!flag || !token.rawName.startsWith('--')) {
      const known = [...Object.keys(command.flags), 'help'].map((name) => `--${name}`);
      // A word after a single dash, such as -team, was split into letters.
      const typed = nameOfFlag(args[token.index] ?? token.rawName);
      throw misused(`Unknown flag ${typed}.${suggestion(typed, known)}`);
    }
    const problem = valueProblem(flag, token);
    if (problem !== null) throw misused(problem);
    if (flag.type === 'boolean') switches.add(token.name);
    else flags[token.name] = token.value ?? '';
  }
  const problem = wordsProblem(command, words);
  if (problem !== null) throw misused(problem);
  return { flags, switches, words };
}

function valueProblem({ type }: Flag, { rawName, value, inlineValue }: FlagToken): string | null {
  if (type === 'boolean') return inlineValue ? `${rawName} takes no value.` : null;
  if (value === undefined) return `${rawName} needs a value.`;
  if (inlineValue || !value.startsWith('-')) return null;
  return `${rawName} needs a value. If the value begins with a dash, write ${rawName}=VALUE.`;
}

interface FlagToken {
  rawName: string;
  value?: string | undefined;
  /** Whether the value was written behind `=`. */
  inlineValue?: boolean | undefined;
}

function wordsProblem({ name, words = [] }: Command, given: readonly string[]): string | null {
  const missing = words[given.length];
  if (missing !== undefined) return `"${name}" needs ${missing}.`;
  const extra = given[words.length];
  if (extra === undefined) return null;
  const taken = [...words, 'flags'].join(' and ');
  return `Unexpected argument "${shown(extra)}": "${name}" takes only ${taken}.`;
}

/** `--team=search` is the flag `--team`. */
function nameOfFlag(arg: string): string {
  return arg.split('=', 1)[0] ?? arg;
}

function suggestion(typed: string, known: readonly string[]): string {
  const meant = closest(typed, known);
  return meant === null ? '' : ` Did you mean ${meant}?`;
}

/** An argument in the wrong place may be an API key or a sign-in code; those are not repeated. */
function shown(argument: string): string {
  return isWellFormedKey(argument) || isWellFormedSignInCode(argument) ? '…' : argument;
}
