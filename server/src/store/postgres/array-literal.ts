/** Columns as PostgreSQL reads arrays. The driver would look at every single value to find out how it is written. */
export function arrayOfPlain(values: readonly (number | boolean | string | null)[]): string {
  // Numbers, booleans and ids hold nothing that needs quotes.
  return `{${values.map((value) => value ?? 'NULL').join(',')}}`;
}

export function arrayOfText(values: readonly (string | null)[]): string {
  return `{${values.map((value) => (value === null ? 'NULL' : quote(value))).join(',')}}`;
}

function quote(text: string): string {
  return needsEscape.test(text) ? `"${text.replaceAll(/["\\]/g, '\\$&')}"` : `"${text}"`;
}

const needsEscape = /["\\]/;
