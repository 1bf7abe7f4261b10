/** One word for a POSIX shell: quoted only if the shell would read it in another way. */
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A flag with its value. A value that begins with a dash would be taken for a flag if it were a word of its own. */
export function flagWords(flag: string, value: string): string[] {
  return value.startsWith('-') ? [`--${flag}=${value}`] : [`--${flag}`, value];
}
