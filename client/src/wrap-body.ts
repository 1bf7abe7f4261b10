import type { Recorder } from './recorder.ts';
import type { Call } from './wrap-call.ts';
import { watchedSource } from './wrap-readable.ts';
import { collect, recordWhenForgotten } from './wrap-stream.ts';
import type { Collector } from './wrap-stream.ts';

type Bytes = Uint8Array<ArrayBuffer>;

/**
 * Observes the server-sent events of a response while they are read, because some helpers of the SDKs read the body themselves. The
 * response stays the SDK's own; only its `body` is replaced.
 */
export function observeBody(
  recorder: Recorder,
  response: Response,
  call: Call,
  collector: Collector,
  signal: AbortSignal | undefined,
): void {
  const { body } = response;
  if (body === null) {
    call.end({});
    return;
  }
  const read = eventReader((data) => {
    const item = JSON.parse(data) as { error?: unknown } | null;
    if (item?.error === undefined || item.error === null) collect(call, collector, item);
    else call.fail(item.error, collector.answer());
  });
  const see = (bytes: Bytes): boolean => {
    read(bytes);
    return true;
  };
  const source = watchedSource<Bytes>(body, { recorder, call, collector, signal, see });
  const observed = new ReadableStream({ type: 'bytes', ...source });
  recordWhenForgotten(response, { call, collector });
  Object.defineProperty(response, 'body', { configurable: true, get: () => observed });
}

/** Takes bytes in any pieces and passes on the data of each complete event. */
function eventReader(take: (data: string) => void): (bytes: Bytes) => void {
  const decoder = new TextDecoder();
  let rest = '';
  let data: string[] = [];
  return (bytes) => {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const text = line.endsWith('\r') ? line.slice(0, -1) : line;
      if (text.startsWith('data:')) data.push(text.slice('data:'.length).trimStart());
      if (text !== '' || data.length === 0) continue;
      const whole = data.join('\n');
      data = [];
      if (whole !== '[DONE]') take(whole);
    }
  };
}
