/** More than fits into a row on any screen. */
const charsMax = 200;

/**
 * The beginning of a prompt as one line, for lists. Of a conversation in JSON, which may be cut off anywhere, it is what the user said
 * last; otherwise the text itself.
 */
export function promptPreview(input: string | null | undefined): string | null {
  if (input === null || input === undefined) return null;
  const text = /^\s*[[{]/.test(input) ? lastUserText(input) || input : input;
  const line = text.replaceAll(/\s+/g, ' ').trim();
  if (line === '') return null;
  return line.length > charsMax ? `${line.slice(0, charsMax).toWellFormed()}…` : line;
}

/** Works on cut-off JSON, which `JSON.parse` does not. */
function lastUserText(json: string): string | null {
  const at = json.search(/"role"\s*:\s*"user"(?!.*"role"\s*:\s*"user")/s);
  if (at === -1) return null;
  const said = /"(?:content|text)"\s*:\s*"((?:[^"\\]|\\.)*)/.exec(json.slice(at))?.[1];
  return said === undefined ? null : unescaped(said);
}

function unescaped(text: string): string | null {
  try {
    // An escape at the very end may be cut off.
    return JSON.parse(`"${text.replace(/\\u[0-9a-f]{0,3}$/i, '')}"`) as string;
  } catch {
    return null;
  }
}
