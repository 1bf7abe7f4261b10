import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeKey, tracetally } from './processes.ts';
import type { ComparedCheckouts } from './other-checkout.ts';

/** Duration and sizes. The quick plan only checks that every bench still runs. */
export interface Plan {
  rounds: number;
  seconds: number;
  warmUpSeconds: number;
  small: number;
  middle: number;
  large: number;
  teams: number;
}

export const fullPlan: Plan = {
  rounds: 5,
  seconds: 2,
  // For so long V8 compiles what a busy server runs, on other threads, and the server is slower than afterwards.
  warmUpSeconds: 8,
  small: 10_000,
  middle: 1_000_000,
  large: 10_000_000,
  teams: 1_000,
};
export const quickPlan: Plan = {
  rounds: 1,
  seconds: 1,
  warmUpSeconds: 1,
  small: 500,
  middle: 1_000,
  large: 2_000,
  teams: 100,
};

/** A database, empty or with sample traces over a year, and an API key for it. */
export interface Dataset {
  name: string;
  /** The value for `--database`. */
  url: string;
  key: string;
  traces: number;
}

/** A database in an SQLite file. */
export interface FileDataset extends Dataset {
  path: string;
}

/** What the benches share: a folder, and databases that are filled once. */
export interface Lab {
  plan: Plan;
  /** Null if nothing is to be compared. */
  compared: ComparedCheckouts | null;
  /** A path for a file of one bench. */
  file(name: string): string;
  /** A path for a database that is kept for the next run. */
  dataFile(name: string): string;
  /** A new, empty database with a key, created by another checkout if one is given. */
  emptyDatabase(name: string, checkout?: string | null): Promise<FileDataset>;
  /** A filled database. */
  dataset(traces: number): Promise<FileDataset>;
  say(line: string): void;
  clear(): void;
}

const team = 'bench';

/** If a folder is given, the databases in it are kept and used again in the next run. */
export function openLab(
  plan: Plan,
  keepIn: string | null,
  compared: ComparedCheckouts | null = null,
): Lab {
  const folder = mkdtempSync(join(tmpdir(), 'tracetally-bench-'));
  const dataFolder = keepIn ?? folder;
  mkdirSync(dataFolder, { recursive: true });
  const made = new Map<number, Promise<FileDataset>>();

  async function describe(
    name: string,
    path: string,
    traces: number,
    checkout: string | null = null,
  ): Promise<FileDataset> {
    return { path, ...(await withKey(name, urlOf(path), traces, checkout)) };
  }

  async function fill(traces: number): Promise<FileDataset> {
    const name = `traces-${traces}`;
    const path = join(dataFolder, `${name}.db`);
    if (!existsSync(path)) await fillDatabase(urlOf(path), traces);
    return describe(name, path, traces);
  }

  return {
    plan,
    compared,
    say,
    file: (name) => join(folder, name),
    dataFile: (name) => join(dataFolder, name),
    emptyDatabase: (name, checkout) => describe(name, join(folder, `${name}.db`), 0, checkout),
    dataset(traces) {
      const dataset = made.get(traces) ?? fill(traces);
      made.set(traces, dataset);
      return dataset;
    },
    clear: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** The database at this URL, with a key of the team that `fillDatabase` fills. */
export async function withKey(
  name: string,
  url: string,
  traces: number,
  checkout: string | null = null,
): Promise<Dataset> {
  return { name, url, key: await makeKey(url, team, checkout), traces };
}

export async function fillDatabase(url: string, traces: number): Promise<void> {
  say(`  filling a database with ${traces.toLocaleString('en')} traces over 365 days …`);
  const args = ['demo', '--team', team, '--count', String(traces), '--days', '365'];
  const { seconds } = await tracetally(url, args);
  say(`  … in ${String(seconds)} s`);
}

function urlOf(path: string): string {
  return `sqlite:${path}`;
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
