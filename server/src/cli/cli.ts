import { parseArgs } from 'node:util';
import { Failure, OperatorError, messageOf, reasonOf } from '../errors.ts';
import { version } from '../version.ts';
import type { Call, Command } from './command.ts';
import { backup } from './backup.ts';
import { copy } from './copy.ts';
import { demo } from './demo.ts';
import { distribute } from './distribute.ts';
import { commandHelp, overviewHelp } from './help.ts';
import { keysCreate } from './keys-create.ts';
import { keysList } from './keys-list.ts';
import { keysRevoke } from './keys-revoke.ts';
import { keysRotate } from './keys-rotate.ts';
import { serve } from './serve.ts';
import { signIn } from './sign-in.ts';
import { teamsCreate } from './teams-create.ts';
import { teamsList } from './teams-list.ts';
import { verify } from './verify.ts';

const commands: readonly Command[] = [
  serve,
  teamsCreate,
  teamsList,
  keysCreate,
  keysList,
  keysRotate,
  keysRevoke,
  signIn,
  verify,
  backup,
  copy,
  distribute,
  demo,
];

const exitCodes = { failed: 1, misused: 2 } as const;

/** Runs one command and tells the exit code: 0 done, 1 failed, 2 not understood. */
export async function main(args: readonly string[]): Promise<number> {
  const print = (text: string): void => void process.stdout.write(`${text}\n`);
  const note = (text: string): void => void process.stderr.write(`${text}\n`);
  try {
    const first = args[0] ?? '--help';
    if (first === '--help' || first === '-h' || first === 'help') {
      print(overviewHelp(commands));
      return 0;
    }
    if (first === '--version') {
      print(version);
      return 0;
    }
    const command = commandOf(args);
    const rest = args.slice(command.name.split(' ').length);
    if (rest.includes('--help') || rest.includes('-h')) {
      print(commandHelp(command));
      return 0;
    }
    return await command.run({ ...parseCall(command, rest), print, note });
  } catch (error) {
    if (error instanceof UsageError) {
      note(error.message);
      return exitCodes.misused;
    }
    note(sentenceOf(error));
    return exitCodes.failed;
  }
}

/** What an operator can act on is a sentence; anything else is a mistake of ours and keeps its stack. */
function sentenceOf(error: unknown): string {
  if (error instanceof OperatorError) return error.message;
  if (!(error instanceof Failure)) throw error;
  return `${error.message} (${reasonOf(error)})`;
}

class UsageError extends Error {}

function commandOf(args: readonly string[]): Command {
  for (const wordCount of [2, 1]) {
    const name = args.slice(0, wordCount).join(' ');
    const command = commands.find((candidate) => candidate.name === name);
    if (command) return command;
  }
  const group = commands.filter(({ name }) => name.startsWith(`${args[0]} `));
  const known = (group.length > 0 ? group : commands).map(({ name }) => name).join(', ');
  const typed = args
    .filter((arg) => !arg.startsWith('-'))
    .slice(0, 2)
    .join(' ');
  throw new UsageError(
    `There is no command "${typed}". Known here: ${known}. See tracetally --help.`,
  );
}

function parseCall(command: Command, args: readonly string[]): Pick<Call, 'flags' | 'words'> {
  const hint = `See tracetally ${command.name} --help.`;
  let parsed;
  try {
    const options = Object.fromEntries(
      Object.entries(command.flags).map(([name, { type }]) => [name, { type }]),
    );
    parsed = parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw new UsageError(`${messageOf(error)} ${hint}`);
  }
  const { values, positionals } = parsed;
  if (positionals.length !== command.words.length) {
    const wanted =
      command.words.length === 0 ? 'takes no words' : `takes ${command.words.join(' ')}`;
    throw new UsageError(`tracetally ${command.name} ${wanted} besides its flags. ${hint}`);
  }
  return { flags: values, words: positionals };
}
