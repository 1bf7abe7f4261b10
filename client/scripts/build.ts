/** Builds the package: ES modules in `dist`, and the same as CommonJS in `dist/cjs`, each with its types. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, globSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const client = fileURLToPath(new URL('../', import.meta.url));
const commonjs = `${client}dist/cjs`;
const compiler = fileURLToPath(import.meta.resolve('typescript/package.json'));
const tsc = compiler.replace(/package\.json$/, 'bin/tsc');

rmSync(`${client}dist`, { recursive: true, force: true });
compile('tsconfig.build.json');

// The nearest package.json tells TypeScript, and later Node.js, that files are CommonJS, so the sources are compiled beside one.
// In this mode `import()` stays as it is, and bundlers see that it may fail; as a call of `require` it would stop their build.
cpSync(`${client}src`, commonjs, { recursive: true });
writeFileSync(`${commonjs}/package.json`, '{ "type": "commonjs" }\n');
const sources = globSync('**/*.ts', { cwd: commonjs });
compile('tsconfig.build-cjs.json');
for (const source of sources) rmSync(`${commonjs}/${source}`);

copyFileSync(fileURLToPath(new URL('../../LICENSE', import.meta.url)), `${client}LICENSE`);

function compile(config: string): void {
  const { status } = spawnSync(process.execPath, [tsc, '-p', `${client}${config}`], {
    stdio: 'inherit',
    timeout: 120_000,
  });
  if (status !== 0) process.exit(status ?? 1);
}
