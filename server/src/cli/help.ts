import type { Command } from './command.ts';
import type { Program } from './program.ts';
import { alignColumns } from './table.ts';

export function overviewHelp(commands: readonly Command[], { run }: Program): string {
  return [
    'TraceTally records every AI call a team makes and reports cost, latency and errors.',
    '',
    `Usage: ${run} COMMAND [FLAGS]`,
    '',
    ...summaries(commands),
    '',
    `For help on a command, run: ${run} COMMAND --help`,
    `For the version, run: ${run} --version`,
  ].join('\n');
}

/** The commands that begin with the same word, such as `keys`. */
export function groupHelp(word: string, commands: readonly Command[], { run }: Program): string {
  return [
    `Usage: ${run} ${word} COMMAND [FLAGS]`,
    '',
    ...summaries(commands),
    '',
    `For help on a command, run: ${run} ${word} COMMAND --help`,
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
    ...indented([...rows, ['--help', 'show this text']]),
    ...(more === undefined ? [] : ['', more]),
    ...(examples.length === 0 ? [] : ['', ...examples.map((example) => `  ${run} ${example}`)]),
  ].join('\n');
}

function summaries(commands: readonly Command[]): string[] {
  return indented(commands.map(({ name, summary }) => [name, summary]));
}

function indented(rows: readonly string[][]): string[] {
  return alignColumns(rows).map((line) => `  ${line}`);
}
