/** `npm run test:packages`: the packed client in projects of every kind. It installs the tools from the npm registry. */
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { nodeOfHost } from '../support/node-of-host.ts';
import { startServer } from '../support/server.ts';
import type { LiveServer } from '../support/server.ts';
import { openPackedLab, programs, runAgainst } from './packed-client.ts';
import type { PackedLab } from './packed-client.ts';

/** The newest that run with Node.js 20. */
const tools = ['typescript@5.9', 'esbuild@0.28', 'vite@7', 'webpack@5', 'bun@1'];
const compilerOptions = { strict: true, target: 'es2022', types: [], skipLibCheck: false };
const node = nodeOfHost();

let lab: PackedLab;
let server: LiveServer;
const records = (command: readonly [string, ...string[]]) => runAgainst(lab, server, command);
const bin = (name: string): string => join(lab.folder, 'node_modules/.bin', name);

interface Bundler {
  name: string;
  formats: readonly ('esm' | 'cjs')[];
  /** Bundles a program in this format into the file, and prints nothing but warnings. */
  bundle(format: string): Promise<{ file: string; printed: string }>;
}

const bundlers: readonly Bundler[] = [
  {
    name: 'esbuild',
    formats: ['esm', 'cjs'],
    async bundle(format) {
      const file = `${format}/esbuild-bundle.js`;
      const options = ['--bundle', '--platform=node', '--minify', '--log-level=warning'];
      const files = [`${format}/program.js`, `--outfile=${file}`];
      const args = [...files, ...options, `--format=${format}`];
      return { file, printed: await lab.run(bin('esbuild'), args) };
    },
  },
  {
    name: 'webpack',
    formats: ['esm', 'cjs'],
    async bundle(format) {
      lab.write(
        'webpack.cjs',
        `require('webpack')({ mode: 'production', target: 'node20', entry: './${format}/program.js',
          output: { path: __dirname + '/webpack-${format}', filename: 'bundle.cjs' } },
          (error, stats) => { if (error || stats.hasErrors()) throw error ?? new Error(String(stats));
            for (const { message } of stats.compilation.warnings) console.log(message); });`,
      );
      const file = `webpack-${format}/bundle.cjs`;
      return { file, printed: await lab.run(node, ['webpack.cjs']) };
    },
  },
  {
    name: 'Vite',
    formats: ['esm'],
    async bundle(format) {
      lab.write(
        'vite.mjs',
        `import { build } from 'vite';
        await build({ logLevel: 'warn', ssr: { noExternal: true },
          build: { ssr: '${format}/program.js', outDir: 'vite', minify: true,
            rollupOptions: { output: { entryFileNames: 'bundle.mjs' } } } });`,
      );
      return { file: 'vite/bundle.mjs', printed: await lab.run(node, ['vite.mjs']) };
    },
  },
];

function testBundles(): void {
  for (const { name, formats, bundle } of bundlers) {
    for (const format of formats) {
      test(`${name} bundles a program of ${format} without a warning, and it records`, async (t) => {
        const { file, printed } = await bundle(format);
        assert.equal(printed, '');
        t.diagnostic(`${file}: ${(statSync(join(lab.folder, file)).size / 1024).toFixed(1)} KB`);
        await records([node, file]);
      });
    }
  }
}

describe('the packed client', { timeout: 900_000 }, () => {
  before(async () => {
    [lab, server] = await Promise.all([openPackedLab(), startServer()]);
    await lab.install(`./${lab.tarball}`, ...tools);
    lab.write('esm/package.json', '{ "type": "module" }');
    lab.write('esm/program.js', programs.esm);
    lab.write('esm/program.ts', programs.typescript);
    lab.write('cjs/package.json', '{ "type": "commonjs" }');
    lab.write('cjs/program.js', programs.commonjs);
    lab.write('cjs/program.ts', programs.typescript);
  });
  after(async () => {
    lab.stop();
    await server.stop();
  });

  for (const [kind, module] of [
    ['esm', 'nodenext'],
    ['cjs', 'nodenext'],
    ['cjs', 'commonjs'],
    ['esm', 'preserve'],
  ] as const) {
    test(`a TypeScript project of ${kind} with module ${module} compiles, and records on Node.js ${node}`, async () => {
      const outDir = `out-${module}`;
      const options = { ...compilerOptions, module, outDir, rootDir: '.', lib: ['es2023', 'dom'] };
      const files = ['program.ts'];
      lab.write(
        `${kind}/tsconfig.json`,
        JSON.stringify({
          compilerOptions:
            module === 'commonjs' ? { ...options, moduleResolution: 'node10' } : options,
          files,
        }),
      );
      await lab.run(bin('tsc'), ['-p', `${kind}/tsconfig.json`]);
      await records([node, `${kind}/${outDir}/program.js`]);
    });
  }

  for (const file of ['esm/program.js', 'esm/program.ts', 'cjs/program.js']) {
    test(`Bun runs ${file}, which records`, () => records([bin('bun'), 'run', file]));
  }

  test('the newest Node.js runs an ES module, which records', () =>
    records([process.execPath, 'esm/program.js']));

  testBundles();
});
