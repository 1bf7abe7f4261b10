/** What may come from outside, as pure functions over manifests and the lock, so that a planted violation can show that they work. */
export interface Manifest {
  name: string;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  scripts?: Record<string, string>;
}

export interface LockedPackage {
  version?: string;
  resolved?: string;
  integrity?: string;
  link?: boolean;
  hasInstallScript?: boolean;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

export interface Lock {
  lockfileVersion: number;
  packages: Record<string, LockedPackage>;
}

/** What gets installed. A peer is the user's own, so it may be a range. */
const kinds = ['dependencies', 'devDependencies', 'optionalDependencies'] as const;

export function runtimeDependencies({ dependencies = {} }: Manifest): string[] {
  return Object.keys(dependencies);
}

/** Anything but one exact version: ranges, tags, aliases, and addresses of other places. */
export function unpinned(manifests: readonly Manifest[]): string[] {
  return manifests.flatMap((manifest) =>
    kinds.flatMap((kind) =>
      Object.entries(manifest[kind] ?? {})
        .filter(([, version]) => !/^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(version))
        .map(([name, version]) => `${manifest.name}: ${name}@${version}`),
    ),
  );
}

function downloaded({ packages }: Lock): [path: string, locked: LockedPackage][] {
  return Object.entries(packages).filter(
    ([path, { link }]) => path.includes('node_modules/') && link !== true,
  );
}

export function withoutIntegrity(lock: Lock): string[] {
  return downloaded(lock)
    .filter(([, { integrity = '' }]) => !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity))
    .map(([path]) => path);
}

export function withInstallScript(lock: Lock, allowed: readonly string[]): string[] {
  return Object.entries(lock.packages)
    .filter(([path, { hasInstallScript }]) => hasInstallScript && !allowed.includes(path))
    .map(([path]) => path);
}

const installSteps = ['preinstall', 'install', 'postinstall', 'prepare', 'prepublish'];

export function ownInstallScripts(manifests: readonly Manifest[]): string[] {
  return manifests.flatMap(({ name, scripts = {} }) =>
    installSteps.filter((step) => step in scripts).map((step) => `${name}: ${step}`),
  );
}

/** A package for another platform that a lock written on this one has lost. */
export function missingOptional({ packages }: Lock): string[] {
  const names = new Set(Object.keys(packages).map((path) => path.replace(/^.*node_modules\//, '')));
  return Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !names.has(name))
      .map((name) => `${path}: ${name}`),
  );
}

/** An entry without an address is taken from the registry, and our lock names no address at all. A link must lead into this repository. */
export function fromElsewhere({ packages }: Lock, workspaces: readonly string[]): string[] {
  return Object.entries(packages)
    .filter(([, { resolved, link }]) =>
      link ? !workspaces.includes(resolved ?? '') : resolved !== undefined,
    )
    .map(([path, { resolved }]) => `${path}: ${resolved}`);
}

/** Where the lock was not written from these manifests. */
export function outOfStep(lock: Lock, manifests: Readonly<Record<string, Manifest>>): string[] {
  const sorted = (record: Record<string, string> = {}) =>
    JSON.stringify(
      Object.keys(record)
        .sort()
        .map((name) => [name, record[name]]),
    );
  return Object.entries(manifests).flatMap(([path, manifest]) =>
    (['dependencies', 'devDependencies', 'optionalDependencies'] as const)
      .filter((kind) => sorted(manifest[kind]) !== sorted(lock.packages[path]?.[kind]))
      .map((kind) => `${manifest.name}: ${kind}`),
  );
}
