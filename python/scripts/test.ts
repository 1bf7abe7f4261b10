/**
 * Runs the checks and tests of the Python client: `npm run test:python`. It needs a Python from 3.10 on, with the modules venv and pip;
 * everything else is installed from PyPI into `python/.venv`. Arguments are passed to pytest.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('..', import.meta.url));
const environment = join(folder, '.venv');
const python = join(environment, 'bin', 'python');
const stamp = join(environment, 'installed');
const requirements = (name: string): string => join(folder, 'tests', name);

/** SDKs of other versions, and the tests that run with them. */
const overlays = [
  { name: 'newer', tests: 'tests/sdks' },
  { name: 'between', tests: 'tests/sdks/test_anthropic.py' },
] as const;

const hostNames = ['python3', 'python3.14', 'python3.13', 'python3.12', 'python3.11', 'python3.10'];
const suits = 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))';

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function findPython(): string | undefined {
  const { TRACETALLY_TEST_PYTHON: chosen } = process.env;
  const names = chosen === undefined ? hostNames : [chosen];
  return names.find((name) => spawnSync(name, ['-c', suits], { stdio: 'ignore' }).status === 0);
}

function run(program: string, args: readonly string[], paths: readonly string[] = []): void {
  const path = [join(folder, 'src'), ...paths].join(delimiter);
  const env = { ...process.env, PYTHONPATH: path, PIP_DISABLE_PIP_VERSION_CHECK: '1' };
  const { status } = spawnSync(program, args, { cwd: folder, stdio: 'inherit', env });
  if (status === 0) return;
  say(`The Python client: ${[program, ...args].join(' ')} failed.`);
  process.exit(status ?? 1);
}

/** Installs again only if Python or a requirement has changed. */
function install(host: string): void {
  const version = spawnSync(host, ['--version'], { encoding: 'utf8' }).stdout;
  const files = ['requirements.txt', 'requirements-newer.txt', 'requirements-between.txt'];
  const texts = files.map((name) => readFileSync(requirements(name), 'utf8'));
  const wanted = createHash('sha256')
    .update(JSON.stringify([version, ...texts]))
    .digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  say(`Installing the SDKs for the tests of the Python client with ${version.trim()}.`);
  rmSync(environment, { recursive: true, force: true });
  run(host, ['-m', 'venv', environment]);
  const pip = ['-m', 'pip', 'install', '--quiet', '--no-input'];
  run(python, [...pip, '--requirement', requirements('requirements.txt')]);
  for (const { name } of overlays) {
    const target = ['--no-deps', '--target', join(environment, name)];
    run(python, [...pip, ...target, '--requirement', requirements(`requirements-${name}.txt`)]);
  }
  writeFileSync(stamp, wanted);
}

const host = findPython();
if (host === undefined) {
  const message =
    'The Python client is not tested: there is no Python from 3.10 on with the modules venv and pip (Debian: python3-venv).';
  say(message);
  process.exit(process.env['CI'] === 'true' ? 1 : 0);
}
install(host);
const more = process.argv.slice(2);
if (more.length === 0) {
  run(python, ['-m', 'ruff', 'format', '--check', '--quiet', '.']);
  run(python, ['-m', 'ruff', 'check', '--quiet', '.']);
  run(python, ['-m', 'mypy']);
  run(python, ['-m', 'pyright']);
}
run(python, ['-m', 'pytest', ...more]);
if (more.length === 0) {
  for (const { name, tests } of overlays) {
    run(python, ['-m', 'pytest', tests], [join(environment, name)]);
  }
}
