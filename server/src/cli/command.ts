import { settingFlags } from '../config.ts';

/** One command of the command line. Its file holds all there is to know about it. */
export interface Command {
  /** As typed, such as `keys create`. */
  name: string;
  summary: string;
  /** Names of the arguments that come without a flag, such as `KEY_ID`. */
  words?: readonly string[];
  flags: Readonly<Record<string, Flag>>;
  /** More for `--help`. */
  more?: string;
  /** For `--help`: what to type after the name of the program. */
  examples?: readonly string[];
  /** Resolves to false if it found something wrong: the exit code is then 1. */
  run(call: Call): Promise<boolean | void>;
}

export interface Flag {
  help: string;
  /** Set if the flag takes no value. */
  type?: 'boolean';
}

export interface Call {
  /** The values of flags that take one. */
  flags: Readonly<Record<string, string | undefined>>;
  /** Flags that take no value. */
  switches: ReadonlySet<string>;
  words: readonly string[];
  /** The command's product to standard output: as JSON with `--json`, else the text. */
  print(product: unknown, text: string): void;
  /** What only a person wants to know: standard error. */
  note(text: string): void;
  /** The same, but nothing with `--json`. */
  hint(text: string): void;
  /** A command line that can be pasted: this program with these words, on the same database. */
  line(...words: string[]): string;
}

export const jsonFlag: Readonly<Record<string, Flag>> = {
  json: { type: 'boolean', help: 'print the result as JSON' },
};

/** The flags of commands that work on one store. */
export const storeFlags = { ...jsonFlag, ...settingFlags('database') };
