/**
 * A pending fetch keeps a Node.js process alive until its timeout, even if only the recording of traces is left to do. Node.js publishes
 * the socket of each fetch request on a diagnostics channel, so the sockets of background batches can be unreferenced. The listener for
 * the end of the process then runs in time. Other runtimes do not publish the socket and wait for the request timeout.
 */
interface DiagnosticsChannels {
  subscribe(name: string, listener: (message: unknown) => void): void;
  unsubscribe(name: string, listener: (message: unknown) => void): void;
}

interface SentHeaders {
  /** The raw head of the request. */
  headers?: unknown;
  socket?: { unref?: () => unknown };
}

const channelName = 'undici:client:sendHeaders';
const pendingKeys = new Set<string>();

function onHeadersSent(message: unknown): void {
  const { headers, socket } = message as SentHeaders;
  if (typeof headers !== 'string') return;
  for (const key of pendingKeys) if (headers.includes(key)) socket?.unref?.();
}

/** Lets the process end while the request with this idempotency key waits for its reply. Returns a function to call after the request. */
export function letProcessEndDuring(idempotencyKey: string): () => void {
  const channels = diagnosticsChannels();
  if (channels === undefined) return () => {};
  pendingKeys.add(idempotencyKey);
  if (pendingKeys.size === 1) channels.subscribe(channelName, onHeadersSent);
  return () => {
    if (pendingKeys.delete(idempotencyKey) && pendingKeys.size === 0) {
      channels.unsubscribe(channelName, onHeadersSent);
    }
  };
}

/** Without an import, which bundlers for browsers could not resolve. */
function diagnosticsChannels(): DiagnosticsChannels | undefined {
  const { process } = globalThis as {
    process?: { getBuiltinModule?: (name: string) => DiagnosticsChannels | undefined };
  };
  return process?.getBuiltinModule?.('node:diagnostics_channel');
}
