/** What a release changes in files, as pure functions. */
export function isVersion(text: string): boolean {
  return /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(text);
}

/** The manifest with the version, and with the repository that it comes from. */
export function withRelease(
  manifest: string,
  version: string,
  repository: string | null,
  file: string,
): string {
  const {
    name,
    version: _,
    description,
    ...rest
  } = JSON.parse(manifest) as Record<string, unknown>;
  const directory = file.split('/')[0];
  const source =
    repository === null ? {} : { repository: { type: 'git', url: repository, directory } };
  return `${JSON.stringify({ name, version, description, ...source, ...rest }, null, 2)}\n`;
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
