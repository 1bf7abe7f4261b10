/** Formats columns as PostgreSQL array literals. The driver's own conversion is slower, since it checks the type of every value. */
export function arrayOfPlain(values: readonly (number | boolean | string | null)[]): string {
  // Numbers, booleans and ids never need quotes.
  return `{${values.map((value) => value ?? 'NULL').join(',')}}`;
}

export function arrayOfText(values: readonly (string | null)[]): string {
  return `{${values.map((value) => (value === null ? 'NULL' : quote(value))).join(',')}}`;
}

function quote(text: string): string {
  return needsEscape.test(text) ? `"${text.replaceAll(/["\\]/g, '\\$&')}"` : `"${text}"`;
}

const needsEscape = /["\\]/;
