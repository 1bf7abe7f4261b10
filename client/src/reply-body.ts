/**
 * The text of a reply, or null if it is longer than the bound: then the rest is not read, whatever the reply says about its length.
 * Counted are the bytes that `fetch` hands out, which are unpacked.
 */
export async function readReply(
  response: Response,
  bytesMax: number,
  signal: AbortSignal,
): Promise<string | null> {
  // A redirect has no body, and some implementations of fetch have no streams.
  if (typeof response.body?.getReader !== 'function') {
    const text = await response.text();
    return text.length > bytesMax ? null : text;
  }
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  // Ends the read even if a fetch of the caller's own does not listen to the signal.
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
