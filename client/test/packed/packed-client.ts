import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LiveServer } from '../support/server.ts';
import { quietly, runToEnd } from '../support/stranger.ts';

const client = fileURLToPath(new URL('../../', import.meta.url));

/** What a user's program does, in any kind of module. The URL and the API key are its arguments. */
const program = `
async function run(TraceTally) {
  const [baseUrl, apiKey] = process.argv.slice(2);
  const tally = new TraceTally({ baseUrl, apiKey, closeTimeoutMs: 60_000 });
  const recorded = await tally.record({ model: 'packed', input: 'Gr\\u00fc\\u00dfe', cost_usd: 0.5 });
  tally.enqueue({ model: 'packed', latency_ms: 5 });
  tally.measure({ model: 'gpt-4o', provider: 'openai' }, (set) => set({ prompt_tokens: 1000 }));
  await tally.close();
  const { traces, total } = await tally.traces.list();
  const [first] = await tally.analytics.byModel();
  if (recorded.input !== 'Gr\\u00fc\\u00dfe' || first.model !== 'packed') throw new Error('wrong data');
  console.log('recorded', total, 'cost', traces.find(({ model }) => model === 'gpt-4o').cost_usd);
}
`;

const typed = program
  .replace('run(TraceTally)', 'run(Client: typeof TraceTally): Promise<void>')
  .replace('new TraceTally', 'new Client')
  .replace('const recorded =', 'const recorded: Trace | null =')
  .replace('recorded.input', 'recorded?.input')
  .replace('first.model', 'first?.model')
  .replace(').cost_usd', ')?.cost_usd');

const typedRun = `declare const process: { argv: string[] };\n${typed}\nvoid run(TraceTally);\n`;

/** The same program in each kind of source. */
export const programs = {
  esm: `import { TraceTally } from '@tracetally/client';\n${program}\nawait run(TraceTally);\n`,
  commonjs: `const { TraceTally } = require('@tracetally/client');\n${program}\nvoid run(TraceTally);\n`,
  typescript: `import { TraceTally } from '@tracetally/client';\nimport type { Trace } from '@tracetally/client';\n${typedRun}`,
} as const;

export interface PackedLab {
  folder: string;
  /** Writes a file below the folder. */
  write(path: string, content: string): void;
  /** Runs a program to its end, and returns what it printed. Fails if the program does. */
  run(command: string, args: readonly string[]): Promise<string>;
  /** Installs packages from the registry, or the tarball. */
  install(...packages: readonly string[]): Promise<void>;
  tarball: string;
  stop(): void;
}

/** An empty folder with the tarball of the client, which must be built. The search path begins with the Node.js of the host. */
export async function openPackedLab(): Promise<PackedLab> {
  const folder = mkdtempSync(join(tmpdir(), 'tracetally-packed-client-'));
  const run = async (command: string, args: readonly string[], cwd = folder): Promise<string> => {
    const { stdout, stderr } = await runToEnd(command, args, { cwd });
    return stdout + stderr;
  };

  // Other tests use what was built, so it is not built again.
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], client);
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? assert.fail();
  writeFileSync(join(folder, 'package.json'), '{ "private": true }');
  return {
    folder,
    tarball,
    write(path, content) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), content);
    },
    run: (command, args) => run(command, args),
    install: async (...packages) => void (await run('npm', ['install', ...quietly, ...packages])),
    stop: () => rmSync(folder, { recursive: true }),
  };
}

/** The cost of 1,000 tokens, which the server computes. */
const knownCost = 0.0025;

/** Runs a program with an API key of its own, and checks that it has recorded its traces. */
export async function runAgainst(
  lab: PackedLab,
  server: LiveServer,
  command: readonly [string, ...string[]],
): Promise<void> {
  const [name, ...args] = command;
  const printed = await lab.run(name, [...args, server.url, await server.freshKey()]);
  assert.match(printed, new RegExp(`recorded 3 cost ${knownCost}`));
}
