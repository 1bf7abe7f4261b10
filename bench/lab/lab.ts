import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeKey, tracetally } from './processes.ts';

/** How long and how large. The quick plan only shows that every bench still runs. */
export interface Plan {
  rounds: number;
  seconds: number;
  warmUpSeconds: number;
  small: number;
  middle: number;
  large: number;
}

export const fullPlan: Plan = {
  rounds: 5,
  seconds: 2,
  warmUpSeconds: 3,
  small: 10_000,
  middle: 1_000_000,
  large: 10_000_000,
};
export const quickPlan: Plan = {
  rounds: 1,
  seconds: 1,
  warmUpSeconds: 1,
  small: 500,
  middle: 1_000,
  large: 2_000,
};

/** A database of made-up traces over a year, and a key to it. */
export interface Dataset {
  path: string;
  key: string;
  traces: number;
}

/** What the benches share: a folder, and databases that are filled once. */
export interface Lab {
  plan: Plan;
  /** A path for a file of one bench. */
  file(name: string): string;
  /** A new, empty database with a key. */
  emptyDatabase(name: string): Promise<Dataset>;
  /** A filled one. */
  dataset(traces: number): Promise<Dataset>;
  say(line: string): void;
  clear(): void;
}

const team = 'bench';

/** With a folder given, its databases stay and are used again the next time. */
export function openLab(plan: Plan, keepIn: string | null): Lab {
  const folder = mkdtempSync(join(tmpdir(), 'tracetally-bench-'));
  const dataFolder = keepIn ?? folder;
  mkdirSync(dataFolder, { recursive: true });
  const made = new Map<number, Promise<Dataset>>();
  const say = (line: string): void => void process.stderr.write(`${line}\n`);

  async function fill(traces: number): Promise<Dataset> {
    const path = join(dataFolder, `traces-${traces}.db`);
    if (!existsSync(path)) {
      say(`  filling a database with ${traces.toLocaleString('en')} traces over 365 days …`);
      const args = ['demo', '--team', team, '--count', String(traces), '--days', '365'];
      const { seconds } = await tracetally(path, args);
      say(`  … in ${String(seconds)} s`);
    }
    return { path, key: await makeKey(path, team), traces };
  }

  return {
    plan,
    say,
    file: (name) => join(folder, name),
    async emptyDatabase(name) {
      const path = join(folder, `${name}.db`);
      return { path, key: await makeKey(path, team), traces: 0 };
    },
    dataset(traces) {
      const dataset = made.get(traces) ?? fill(traces);
      made.set(traces, dataset);
      return dataset;
    },
    clear: () => rmSync(folder, { recursive: true, force: true }),
  };
}
