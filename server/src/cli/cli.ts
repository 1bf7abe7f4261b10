import { readStart } from '../config.ts';
import { Failure, OperatorError, reasonOf } from '../errors.ts';
import { version } from '../version.ts';
import { backup } from './backup.ts';
import type { Call, Command } from './command.ts';
import { commandLine } from './command-line.ts';
import { copy } from './copy.ts';
import { demo } from './demo.ts';
import { distribute } from './distribute.ts';
import { commandHelp, groupHelp, overviewHelp } from './help.ts';
import { keysCreate } from './keys-create.ts';
import { keysList } from './keys-list.ts';
import { keysRevoke } from './keys-revoke.ts';
import { keysRotate } from './keys-rotate.ts';
import { pricesExplain } from './prices-explain.ts';
import { pricesHistory } from './prices-history.ts';
import { pricesList } from './prices-list.ts';
import { pricesSet } from './prices-set.ts';
import { pricesUnset } from './prices-unset.ts';
import { programOf } from './program.ts';
import type { Program, Start } from './program.ts';
import { query } from './query.ts';
import { reprice } from './reprice.ts';
import { serve } from './serve.ts';
import { signIn } from './sign-in.ts';
import { teamsCreate } from './teams-create.ts';
import { teamsList } from './teams-list.ts';
import { teamsSet } from './teams-set.ts';
import { UsageError, findCommand, groupOf, parseCall } from './usage.ts';
import type { ParsedCall } from './usage.ts';
import { verify } from './verify.ts';

const commands: readonly Command[] = [
  serve,
  teamsCreate,
  teamsSet,
  teamsList,
  keysCreate,
  keysList,
  keysRotate,
  keysRevoke,
  signIn,
  pricesSet,
  pricesList,
  pricesUnset,
  pricesExplain,
  reprice,
  pricesHistory,
  query,
  verify,
  backup,
  copy,
  distribute,
  demo,
];

/** Where a command was typed, and where it prints whole lines. */
export interface Terminal {
  start: Start;
  print(text: string): void;
  /** To standard error. */
  note(text: string): void;
}

/** Runs one command and returns the exit code: 0 done, 1 failed, 2 not understood. */
export async function main(
  args: readonly string[],
  terminal: Terminal = ownTerminal(),
): Promise<number> {
  const { print, note } = terminal;
  const program = programOf(terminal.start);
  try {
    const text = helpFor(args, program) ?? (args[0] === '--version' ? version : null);
    if (text !== null) {
      print(text);
      return 0;
    }
    const { command, rest } = findCommand(commands, args);
    const isFine = await command.run(makeCall(parseCall(command, rest), program, terminal));
    return isFine === false ? 1 : 0;
  } catch (error) {
    if (error instanceof UsageError) {
      const help = [program.run, ...error.helpAbout, '--help'].join(' ');
      note(`${error.message}\nFor help, run: ${help}`);
      return 2;
    }
    note(sentenceOf(error));
    return 1;
  }
}

function ownTerminal(): Terminal {
  const { launcher, ...start } = readStart();
  return {
    start: {
      node: process.argv0,
      script: launcher ?? process.argv[1] ?? '',
      folder: process.cwd(),
      ...start,
    },
    print: (text) => void process.stdout.write(`${text}\n`),
    note: (text) => void process.stderr.write(`${text}\n`),
  };
}

function makeCall(parsed: ParsedCall, program: Program, { print, note }: Terminal): Call {
  const isJson = parsed.switches.has('json');
  return {
    ...parsed,
    print: (product, text) => print(isJson ? JSON.stringify(product) : text),
    note,
    hint: isJson ? () => {} : note,
    line: (...words) => commandLine(program, parsed.flags, words),
  };
}

/** `help keys create` is the same as `keys create --help`. */
function helpFor(args: readonly string[], program: Program): string | null {
  const isHelpCommand = args[0] === 'help';
  const about = isHelpCommand ? args.slice(1) : args;
  const isAsked = isHelpCommand || about.includes('--help') || about.includes('-h');
  const first = about[0] ?? (isHelpCommand ? '--help' : '');
  if (first === '--help' || first === '-h') return overviewHelp(commands, program);
  if (!isAsked) return null;
  const group = groupOf(commands, first);
  const second = about[1] ?? '--help';
  if (group.length > 0 && second.startsWith('-'))
    return groupHelp(group, `${program.run} ${first}`);
  return commandHelp(findCommand(commands, about).command, program);
}

/** What an operator can act on is a sentence; anything else is a bug and keeps its stack. */
function sentenceOf(error: unknown): string {
  if (error instanceof OperatorError) return error.message;
  if (!(error instanceof Failure)) throw error;
  return `${error.message} (${reasonOf(error)})`;
}
