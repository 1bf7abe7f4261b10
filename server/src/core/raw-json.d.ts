/** Not declared in TypeScript's standard library yet. */
interface JSON {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { source: string }) => unknown,
  ): unknown;
  /** A number with exactly these digits, for `stringify`. */
  rawJSON(text: string): unknown;
}
