/**
 * Returns the request target with a path that always decodes: in a segment with invalid percent codes, each `%` is taken literally.
 * Otherwise the router would reply to such a path before any hook runs, and therefore without checking the API key.
 */
export function decodablePath(target: string): string {
  if (!target.includes('%')) return target;
  const [path = ''] = target.split(/[?#]/, 1);
  const segments = path
    .split('/')
    .map((segment) => (isDecodable(segment) ? segment : segment.replaceAll('%', '%25')));
  return `${segments.join('/')}${target.slice(path.length)}`;
}

export function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
