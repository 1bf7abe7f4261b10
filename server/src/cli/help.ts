import type { Command } from './command.ts';
import type { Program } from './program.ts';
import { alignColumns } from './table.ts';

export function overviewHelp(commands: readonly Command[], { run }: Program): string {
  return [
    'TraceTally records every AI call a team makes and reports cost, latency and errors.',
    '',
    groupHelp(commands, run),
    `Without a command, "serve" is run.`,
    `For the version, run: ${run} --version`,
  ].join('\n');
}

/** Lists commands that begin with the same words: the program, and perhaps a group such as `keys`. */
export function groupHelp(commands: readonly Command[], start: string): string {
  return [
    `Usage: ${start} COMMAND [FLAGS]`,
    '',
    alignColumns(
      commands.map(({ name, summary }) => [name, summary]),
      '  ',
    ),
    '',
    `For help on a command, run: ${start} COMMAND --help`,
  ].join('\n');
}

export function commandHelp(
  { name, summary, words = [], flags, more, examples = [] }: Command,
  { run }: Program,
): string {
  const rows = Object.entries(flags).map(([flag, { type, help }]) => [
    type === 'boolean' ? `--${flag}` : `--${flag} …`,
    help,
  ]);
  return [
    `${summary}.`,
    '',
    `Usage: ${run} ${[name, ...words].join(' ')} [FLAGS]`,
    '',
    alignColumns([...rows, ['--help', 'show this text']], '  '),
    ...(more === undefined ? [] : ['', more]),
    ...(examples.length === 0 ? [] : ['', ...examples.map((example) => `  ${run} ${example}`)]),
  ].join('\n');
}
