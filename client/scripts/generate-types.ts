/**
 * Writes client/src/api-types.ts and client/src/reply-shapes.ts from docs/openapi.json: `npm run client-types`.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { shapesFromSchemas } from './shapes-from-schemas.ts';
import { refsIn, typeFromParameters, typesFromSchemas } from './types-from-schemas.ts';
import type { Parameter, Schema } from './types-from-schemas.ts';

interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

interface Operation {
  responses?: Record<string, unknown>;
  parameters?: readonly Parameter[];
}

const root = new URL('../../', import.meta.url);
const typesFile = new URL('client/src/api-types.ts', root);
const shapesFile = new URL('client/src/reply-shapes.ts', root);
const head = '// Written by `npm run client-types` from docs/openapi.json; edits are lost.\n\n';

/** What api-types.ts must hold. */
export function apiTypes(): string {
  const document = readDocument();
  return formatted(
    typesFile,
    `${typesFromSchemas(document.components.schemas)}\n${filterTypes(document)}`,
  );
}

/** Parameters that are not part of a filter, but of how a list is shown. */
const shown = new Set(['page', 'limit', 'omit', 'preview_chars', 'cursor']);

function filterTypes({ paths }: Document): string {
  const parametersOf = (path: string): readonly Parameter[] =>
    (paths[path]?.['get']?.parameters ?? []).filter((parameter) => parameter.in === 'query');
  const common = parametersOf('/analytics/overview');
  const names = new Set(common.map(({ name }) => name));
  return [
    typeFromParameters('AnalyticsFilter', 'Which traces an analytics question is about.', common),
    typeFromParameters(
      'TraceFilter',
      'Which traces a list shows.',
      parametersOf('/traces').filter(({ name }) => !shown.has(name)),
    ),
    typeFromParameters(
      'QueryParameters',
      'The parameters of `/analytics/query` besides the filter.',
      parametersOf('/analytics/query').filter(({ name }) => !names.has(name)),
    ),
  ].join('\n');
}

/** What reply-shapes.ts must hold. */
export function replyShapes(): string {
  const document = readDocument();
  const { schemas } = document.components;
  const names = namesInReplies(document);
  const imports = [
    `import type { ${names.join(', ')} } from './api-types.ts';`,
    `import type { Shape } from './reply-check.ts';`,
  ];
  return formatted(shapesFile, `${imports.join('\n')}\n\n${shapesFromSchemas(schemas, names)}`);
}

/** The schemas that a successful reply consists of, in the order of the document: each after those that it refers to. */
function namesInReplies({ paths, components }: Document): string[] {
  const successes = Object.values(paths)
    .flatMap((path) => Object.values(path))
    .flatMap(({ responses = {} }) => Object.entries(responses))
    .filter(([status]) => status.startsWith('2'))
    .map(([, reply]) => reply);
  const found = new Set(refsIn(successes));
  for (const name of found) for (const inner of refsIn(components.schemas[name])) found.add(inner);
  return Object.keys(components.schemas).filter((name) => found.has(name));
}

function readDocument(): Document {
  return JSON.parse(readFileSync(new URL('docs/openapi.json', root), 'utf8')) as Document;
}

/** As the rest of the source is. */
function formatted(file: URL, source: string): string {
  const formatter = fileURLToPath(new URL('node_modules/oxfmt/bin/oxfmt', root));
  const args = [formatter, `--stdin-filepath=${fileURLToPath(file)}`];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    input: head + source,
    encoding: 'utf8',
    cwd: fileURLToPath(root),
  });
  if (status !== 0) throw new Error(`oxfmt failed: ${stderr}`);
  return stdout;
}

if (import.meta.main) {
  writeFileSync(typesFile, apiTypes());
  writeFileSync(shapesFile, replyShapes());
}
