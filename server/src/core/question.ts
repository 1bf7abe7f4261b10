import type { FieldError } from '../errors.ts';
import { filterFields } from './dimensions.ts';
import type { MetadataFilter, TraceFilter } from './query.ts';

/** Parameters as they were sent: a list if one was repeated. Their form has been checked. */
export type SentParameters = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface AskedFilter {
  filter: TraceFilter;
  metadata: MetadataFilter;
}

export const metadataPrefix = 'metadata.';

/** An empty value means "not set", except for a status. */
export function readFilter(sent: SentParameters): AskedFilter {
  const filter = filterFields.flatMap((field) => {
    const accepted = acceptedOf(sent[field]);
    return accepted === null ? [] : [[field, accepted] as const];
  });
  const metadata = Object.keys(sent)
    .filter((name) => name.startsWith(metadataPrefix))
    .map((name) => [name.slice(metadataPrefix.length), acceptedOf(sent[name]) ?? []] as const);
  return { filter: Object.fromEntries(filter), metadata: Object.fromEntries(metadata) };
}

function acceptedOf(sent: SentParameters[string]): readonly (string | null)[] | null {
  if (sent === undefined) return null;
  const values = typeof sent === 'string' ? [sent] : sent;
  return [...new Set(values.map((value) => (value === '' ? null : value)))];
}

/** A parameter that may appear only once. */
export function single(sent: SentParameters, name: string): string | undefined {
  const value = sent[name];
  return typeof value === 'string' ? value : undefined;
}

/** What is wrong with parameters that need another one. */
export function missingPartners(
  sent: SentParameters,
  partners: Readonly<Record<string, string>>,
): FieldError[] {
  return Object.entries(partners)
    .filter(([name, partner]) => sent[name] !== undefined && sent[partner] === undefined)
    .map(([field, partner]) => ({ field, message: `must be combined with ${partner}` }));
}
