import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The Python package: built from the clone, checked, and installed in an empty environment. */

const builder = 'hatchling==1.33.0';
const uploader = 'twine';

/** What both packages consist of, besides the modules. */
const wheelFiles = ['py.typed', 'METADATA', 'WHEEL', 'LICENSE', 'RECORD'];
const sourceFiles = [
  'README.md',
  'LICENSE',
  'pyproject.toml',
  'PKG-INFO',
  '.gitignore',
  'py.typed',
];

export interface PythonPackages {
  files: string[];
  /** Uploads both. */
  publish(): void;
}

/** As Python writes versions: `1.0.0-rc.1` is `1.0.0rc1`. */
export function pythonVersion(version: string): string {
  return version.replace(/-(?:rc|alpha|beta)\.?(\d+)$/, (suffix, number: string) => {
    const kind = suffix.startsWith('-rc') ? 'rc' : suffix.startsWith('-alpha') ? 'a' : 'b';
    return `${kind}${number}`;
  });
}

/** The file that holds the version of the Python package. */
export const pythonVersionFile = 'python/src/tracetally/__init__.py';

export function releasedModule(text: string, version: string): string {
  return text.replace(/__version__ = "[^"]*"/, `__version__ = "${pythonVersion(version)}"`);
}

function run(folder: string, program: string, ...args: string[]): string {
  return execFileSync(program, args, { cwd: folder, encoding: 'utf8' }).trim();
}

const list = `import sys, tarfile, zipfile
for path in sys.argv[1:]:
    names = zipfile.ZipFile(path).namelist() if path.endswith(".whl") else tarfile.open(path).getnames()
    print("\\n".join(names))`;

/** Builds a wheel and a source package into the folder. Throws if they hold anything unexpected or do not work. */
export function packPython(clone: string, folder: string, version: string): PythonPackages {
  const tools = join(folder, 'python-tools');
  run(folder, 'python3', '-m', 'venv', tools);
  const python = join(tools, 'bin', 'python');
  run(folder, python, '-m', 'pip', 'install', '--quiet', builder, uploader);
  const dist = join(folder, 'python-dist');
  run(join(clone, 'python'), python, '-m', 'hatchling', 'build', '--directory', dist);
  const name = `tracetally-${pythonVersion(version)}`;
  const files = [`${name}-py3-none-any.whl`, `${name}.tar.gz`];
  const built = readdirSync(dist).toSorted();
  if (built.join() !== files.toSorted().join()) throw new Error(`Built: ${built.join(', ')}`);
  const [wheel = '', source = ''] = files.map((file) => join(dist, file));
  checkFiles(run(folder, python, '-c', list, wheel), wheelFiles);
  checkFiles(run(folder, python, '-c', list, source), sourceFiles);
  run(folder, python, '-m', 'twine', 'check', '--strict', wheel, source);
  tryInEmptyEnvironment(folder, wheel, pythonVersion(version));
  return {
    files: [wheel, source],
    publish: () => void run(folder, python, '-m', 'twine', 'upload', wheel, source),
  };
}

function checkFiles(names: string, others: readonly string[]): void {
  const unexpected = names.split('\n').filter((name) => {
    const base = name.slice(name.lastIndexOf('/') + 1);
    return !others.includes(base) && !/\/?tracetally\/[a-z_]+\.py$/.test(name);
  });
  if (unexpected.length > 0) throw new Error(`The package contains ${unexpected.join(', ')}`);
}

function tryInEmptyEnvironment(folder: string, wheel: string, version: string): void {
  const empty = join(folder, 'python-empty');
  run(folder, 'python3', '-m', 'venv', empty);
  const python = join(empty, 'bin', 'python');
  run(folder, python, '-m', 'pip', 'install', '--quiet', '--no-index', wheel);
  const program =
    'import tracetally; tracetally.TraceTally(enabled=False); print(tracetally.__version__)';
  const printed = run(folder, python, '-c', program);
  if (printed !== version) throw new Error(`The installed package says that it is ${printed}.`);
}

/** Sets the version in a clone. */
export function setPythonVersion(clone: string, version: string): void {
  const path = join(clone, pythonVersionFile);
  writeFileSync(path, releasedModule(readFileSync(path, 'utf8'), version));
}
