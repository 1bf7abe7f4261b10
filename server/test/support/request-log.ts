import { appendFileSync, closeSync, existsSync, openSync, readFileSync } from 'node:fs';

/** A request that a test client sent, and the answers that it got. */
export interface LoggedRequest {
  team: number;
  /** Unique per request, however often it was sent. */
  name: string;
  /** Each 201. A request with an idempotency key may be acknowledged more than once. */
  acknowledged: { isReplay: boolean; ids: string[] }[];
  /** The error code of the last answer that was not a 201. */
  failure: string | null;
}

/** The file in which test clients write down what they sent and what was acknowledged. It is independent of the server. */
export interface RequestLog {
  /** Before a request is sent for the first time. */
  sent(team: number, name: string): void;
  /** After a 201 has been read to its end. */
  acknowledged(team: number, name: string, ids: readonly string[], isReplay?: boolean): void;
  /** After another answer has been read to its end. */
  failed(team: number, name: string, code: string): void;
  close(): void;
}

export function openRequestLog(path: string): RequestLog {
  const file = openSync(path, 'a');
  const write = (...words: unknown[]): void => appendFileSync(file, `${words.join(' ')}\n`);
  return {
    sent: (team, name) => write('sent', team, name),
    acknowledged: (team, name, ids, isReplay = false) =>
      write('acknowledged', team, name, isReplay, ids.join()),
    failed: (team, name, code) => write('failed', team, name, code),
    close: () => closeSync(file),
  };
}

export function readRequestLog(path: string): LoggedRequest[] {
  const requests = new Map<string, LoggedRequest>();
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : [];
  for (const line of lines) {
    const [event, team, name = '', word = '', ids = ''] = line.split(' ');
    const request = requests.get(name) ?? {
      team: Number(team),
      name,
      acknowledged: [],
      failure: null,
    };
    if (event === 'failed') request.failure = word;
    if (event === 'acknowledged') {
      request.acknowledged.push({ isReplay: word === 'true', ids: ids.split(',') });
    }
    requests.set(name, request);
  }
  return [...requests.values()];
}
