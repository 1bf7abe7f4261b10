import type { Command } from './command.ts';

export function overviewHelp(commands: readonly Command[]): string {
  const rows = commands.map(({ name, summary }) => [name, summary] as const);
  return [
    'TraceTally records every AI call a team makes and tallies what it cost.',
    '',
    'Usage: tracetally COMMAND [FLAGS]',
    '',
    ...columns(rows),
    '',
    'tracetally COMMAND --help tells more. tracetally --version tells the version.',
  ].join('\n');
}

export function commandHelp({ name, summary, words, flags, more }: Command): string {
  const rows = Object.entries(flags).map(
    ([flag, { type, help }]) => [`--${flag}${type === 'string' ? ' …' : ''}`, help] as const,
  );
  return [
    `${summary}.`,
    '',
    `Usage: tracetally ${[name, ...words].join(' ')} [FLAGS]`,
    '',
    ...columns([...rows, ['--help', 'this text']]),
    ...(more === undefined ? [] : ['', more]),
  ].join('\n');
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
