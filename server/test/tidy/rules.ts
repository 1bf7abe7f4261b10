/** The rules for the code, as pure functions over texts, so that a planted violation can show that they work. */
export interface SourceFile {
  /** Below `server/src`, such as `http/app.ts`. */
  path: string;
  text: string;
}

/**
 * The import direction: a folder, or a file beside the folders, may import from itself and from those before it in this list.
 */
const layers = [
  'installation',
  'version',
  'limits',
  'v8',
  'errors',
  'log',
  'core',
  'query',
  'metrics',
  'store',
  'tools',
  'ingest',
  'http',
  'config',
  'main',
  'cli',
];

export function wrongImports(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) =>
    importsOf(text)
      .map((specifier) => new URL(specifier, `file:///${path}`).pathname.slice(1))
      .filter((target) => rank(target) > rank(path))
      .map((target) => `${path} imports ${target}`),
  );
}

function importsOf(text: string): string[] {
  const found = text.matchAll(/(?:from|import|new URL\()\s*\(?'(\.{1,2}\/[^']+|[a-z-]+\.ts)'/g);
  return [...found].map((match) => match[1] ?? '').filter((specifier) => specifier.endsWith('.ts'));
}

function rank(path: string): number {
  const layer = path.split('/')[0]?.replace(/\.ts$/, '') ?? '';
  const place = layers.indexOf(layer);
  if (place === -1) throw new Error(`${path}: add "${layer}" to the list of layers`);
  return place;
}

export function environmentReaders(files: readonly SourceFile[]): string[] {
  return files
    .filter(
      ({ path, text }) =>
        path !== 'config.ts' &&
        /process\s*\.\s*env|process\[['"]env|from 'node:process'/.test(text),
    )
    .map(({ path }) => path);
}

/** Each name must stand in the document as code, such as `queue_full`. */
export function undocumented(names: readonly string[], document: string): string[] {
  return names.filter((name) => !document.includes(`\`${name}\``));
}

export function overgrown(files: readonly SourceFile[], linesMax: number): string[] {
  return files
    .map(({ path, text }) => ({ path, lines: text.split('\n').length }))
    .filter(({ lines }) => lines > linesMax)
    .map(({ path, lines }) => `${path} has ${lines} lines`);
}

/** Each limit must be a row of the table, with its value. */
export function missingLimits(
  limits: Readonly<Record<string, number>>,
  document: string,
): string[] {
  return Object.entries(limits)
    .map(([name, value]) => `| \`${name}\` | ${value.toLocaleString('en-US')} |`)
    .filter((row) => !document.includes(row));
}

/** Groups of files that import each other, types included: each as the paths of one cycle. */
export function importCycles(files: readonly SourceFile[]): string[] {
  const targets = new Map(
    files.map(({ path, text }) => [
      path,
      importsOf(text).map((specifier) => new URL(specifier, `file:///${path}`).pathname.slice(1)),
    ]),
  );
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const at = trail.indexOf(path);
    if (at !== -1) cycles.push([...trail.slice(at), path].join(' > '));
    if (at !== -1 || done.has(path)) return;
    for (const target of targets.get(path) ?? []) visit(target, [...trail, path]);
    done.add(path);
  };
  for (const path of targets.keys()) visit(path, []);
  return cycles;
}

/** The packages that are loaded with a file, through the files that it imports at once. Types are not loaded. */
export function packagesLoadedBy(files: readonly SourceFile[], start: string): string[] {
  const texts = new Map(files.map(({ path, text }) => [path, text]));
  const packages = new Set<string>();
  const seen = new Set<string>();
  const visit = (path: string): void => {
    if (seen.has(path)) return;
    seen.add(path);
    const text = texts.get(path) ?? '';
    const found = text.matchAll(/^(?:import|export) (?!type )[\w\s{},*]*?\bfrom '([^']+)'/gm);
    for (const [, specifier = ''] of found) {
      if (specifier.startsWith('.')) visit(new URL(specifier, `file:///${path}`).pathname.slice(1));
      else if (!specifier.startsWith('node:')) packages.add(specifier);
    }
  };
  visit(start);
  return [...packages].sort((a, b) => (a < b ? -1 : 1));
}

/** Test files that poll in a loop of their own. */
export function ownWaits(files: readonly SourceFile[]): string[] {
  const loops = [
    /\b(?:for|while) \(.*\) await (?:sleep|delay)\(/,
    /\b(?:for|while) \(.*\) \{\s*await (?:sleep|delay)\((?:\d+|\w+)\);\s*\}/,
    /\bfunction until[A-Z]/,
    /\bfor \(let waits\b/,
  ];
  return files.filter(({ text }) => loops.some((loop) => loop.test(text))).map(({ path }) => path);
}

/** Test files with random numbers that no seed repeats. */
export function unseededRandoms(files: readonly SourceFile[]): string[] {
  return files
    .filter(
      ({ path, text }) => path !== 'test/support/seeded-random.ts' && /Math\.random/.test(text),
    )
    .map(({ path }) => path);
}
