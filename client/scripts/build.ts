/** Builds the package: ES modules in `dist`, and the same as CommonJS in `dist/cjs`, each with its types. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const client = fileURLToPath(new URL('../', import.meta.url));
const compiler = fileURLToPath(import.meta.resolve('typescript/package.json'));
const tsc = compiler.replace(/package\.json$/, 'bin/tsc');

rmSync(`${client}dist`, { recursive: true, force: true });
for (const config of ['tsconfig.build.json', 'tsconfig.build-cjs.json']) {
  const { status } = spawnSync(process.execPath, [tsc, '-p', `${client}${config}`], {
    stdio: 'inherit',
    timeout: 120_000,
  });
  if (status !== 0) process.exit(status ?? 1);
}
// Marks the files of this folder as CommonJS, for Node.js and for TypeScript.
writeFileSync(`${client}dist/cjs/package.json`, '{ "type": "commonjs" }\n');
copyFileSync(fileURLToPath(new URL('../../LICENSE', import.meta.url)), `${client}LICENSE`);
