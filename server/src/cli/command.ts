/** One command of the command line. Its file holds all there is to know about it. */
export interface Command {
  /** As typed, such as `keys create`. */
  name: string;
  summary: string;
  /** Names of the arguments that come without a flag, such as `KEY_ID`. */
  words: readonly string[];
  flags: Readonly<Record<string, Flag>>;
  /** More for `--help`. */
  more?: string;
  /** For `--help`: what to type after the name of the program. */
  examples?: readonly string[];
  run(call: Call): Promise<number>;
}

export interface Flag {
  type: 'string' | 'boolean';
  help: string;
}

export interface Call {
  flags: Readonly<Record<string, string | boolean | undefined>>;
  words: readonly string[];
  /** The command's product, for people or programs: standard output. */
  print(text: string): void;
  /** What only a person wants to know: standard error. */
  note(text: string): void;
  /** A command line that can be pasted: this program with these words, on the same database. */
  line(...words: string[]): string;
}

export const jsonFlag = { json: { type: 'boolean', help: 'print JSON' } } as const;

export function textFlag({ flags }: Call, name: string): string | null {
  const value = flags[name];
  return typeof value === 'string' ? value : null;
}
