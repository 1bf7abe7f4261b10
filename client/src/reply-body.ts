/**
 * The text of a reply, or null if it is larger than the limit; the rest is then not read. Counts the decompressed bytes, not the
 * Content-Length header.
 */
export async function readReply(
  response: Response,
  bytesMax: number,
  signal: AbortSignal,
): Promise<string | null> {
  // A redirect has no body, and some fetch implementations have no streams.
  if (typeof response.body?.getReader !== 'function') {
    const text = await response.text();
    return text.length > bytesMax ? null : text;
  }
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  // Ends the read even if a custom fetch ignores the signal.
  const cancel = (): void => void reader.cancel().catch(() => {});
  if (signal.aborted) cancel();
  signal.addEventListener('abort', cancel);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return text + decoder.decode();
      bytes += value.byteLength;
      if (bytes > bytesMax) {
        cancel();
        return null;
      }
      text += decoder.decode(value, { stream: true });
    }
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}
