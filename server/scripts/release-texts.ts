/** What a release changes in files, as pure functions. */
export function isVersion(text: string): boolean {
  return /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(text);
}

type Manifest = Readonly<Record<string, unknown>>;

/** A manifest, or its copy in the lock file, with the version. Dependencies on packages of this workspace get it too. */
function atVersion(manifest: Manifest, version: string, own: ReadonlySet<string>): Manifest {
  const entries = Object.entries(manifest).map(([name, value]) => {
    if (name === 'version') return [name, version];
    if (!/^(dev|peer|optional)?dependencies$/i.test(name)) return [name, value];
    const wanted = Object.entries(value as Record<string, string>);
    return [
      name,
      Object.fromEntries(wanted.map(([one, range]) => [one, own.has(one) ? version : range])),
    ];
  });
  return Object.fromEntries(entries) as Manifest;
}

/** The manifest of a release. A package that is published also names the folder of the repository that it comes from. */
export function releasedManifest(
  text: string,
  version: string,
  own: ReadonlySet<string>,
  source: { repository: string | null; directory: string },
): string {
  const manifest = atVersion(JSON.parse(text) as Manifest, version, own);
  const { name, version: _, description, ...rest } = manifest;
  if (source.repository === null || manifest['publishConfig'] === undefined) return json(manifest);
  const repository = { type: 'git', url: source.repository, directory: source.directory };
  return json({ name, version, description, repository, ...rest });
}

/** The lock file repeats the version and the dependencies of every package of the workspace. */
export function releasedLock(text: string, version: string, own: ReadonlySet<string>): string {
  const lock = JSON.parse(text) as { packages: Record<string, Manifest> };
  const packages = Object.entries(lock.packages).map(([path, one]) =>
    path.includes('node_modules') ? [path, one] : [path, atVersion(one, version, own)],
  );
  return json({ ...lock, version, packages: Object.fromEntries(packages) });
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** The public address of a git remote, as npm wants it: without the name or the token of whoever uses it. Null for a path. */
export function publicAddress(remote: string): string | null {
  const [, host, path] = /^(?:[^@/\s]+@)?([^:/\s]+):(?!\/\/)\/?(\S+)$/.exec(remote) ?? [];
  if (host !== undefined && path !== undefined) return `git+https://${host}/${path}`;
  if (!URL.canParse(remote)) return null;
  const { protocol, host: withPort, hostname, pathname } = new URL(remote);
  if (protocol === 'https:') return `git+https://${withPort}${pathname}`;
  return protocol === 'ssh:' || protocol === 'git:' ? `git+https://${hostname}${pathname}` : null;
}

const unreleased = '## Unreleased\n';

/** The changelog with the entries so far under the version and its date, and an empty part for the next one. */
export function datedChangelog(text: string, version: string, date: string): string {
  if (text.includes(`\n## ${version} `))
    throw new Error(`CHANGELOG.md has a part for ${version} already.`);
  const [, entries = ''] = /^## Unreleased\n([^]*?)(?=^## |(?![^]))/m.exec(text) ?? [];
  if (!/^- /m.test(entries)) throw new Error('CHANGELOG.md has no entries under "Unreleased".');
  return text.replace(unreleased, `${unreleased}\n## ${version} (${date})\n`);
}
