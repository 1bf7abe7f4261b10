/** Builds what the npm package contains: the service as JavaScript in `dist`, the dashboard in `page`, and the license. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const server = fileURLToPath(new URL('../', import.meta.url));
const checkout = fileURLToPath(new URL('../../', import.meta.url));
const tsc = fileURLToPath(import.meta.resolve('typescript/package.json')).replace(
  /package\.json$/,
  'bin/tsc',
);

function run(...args: string[]): void {
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit', timeout: 300_000 });
  if (status !== 0) process.exit(status ?? 1);
}

for (const folder of ['dist', 'page']) {
  rmSync(`${server}${folder}`, { recursive: true, force: true });
}
run(tsc, '-p', `${server}tsconfig.build.json`);
run(`${checkout}dashboard/build.ts`, '--if-stale', '--or-fail');
cpSync(`${checkout}dashboard/dist`, `${server}page`, { recursive: true });
copyFileSync(`${checkout}LICENSE`, `${server}LICENSE`);
