import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** What befalls the next commit on its way. */
export type Mishap =
  | 'none'
  /** It never arrives. */
  | 'lost'
  /** It arrives, and the answer does not. */
  | 'answerLost'
  /** It arrives some time after the caller has seen the connection break, and after all commits that are planned. */
  | 'late'
  /** It is stored, and answered with an error: what a coordinator does that misses the answer of a node. */
  | 'denied'
  /** It is stored and answered, and an error follows. */
  | 'deniedAfter';

/** A proxy between a store and PostgreSQL that breaks the connection of a commit when a test asks for it. */
export interface CommitProxy {
  port: number;
  /** One mishap for each of the next commits. */
  plan: Mishap[];
  /** How many late commits PostgreSQL has dealt with. */
  lateEnded(): number;
  /** The most calls that were sent on one connection and not answered yet. */
  callsAtOnceMax(): number;
  close(): Promise<void>;
}

/** A commit as it goes over the wire: a simple query, or the text of a statement. */
const commit = Buffer.from('commit\0');
const commitAnswer = Buffer.from('COMMIT\0');
/** A call of the function that stores a batch commits by itself. Its text is sent once, after the name under which it is prepared. */
const preparedCall = /(\w+)\0select tracetally_store_/;
const callAnswer = Buffer.from('SELECT 1\0');

function occurrences(data: Buffer, what: Buffer): number {
  let count = 0;
  for (let at = data.indexOf(what); at !== -1; at = data.indexOf(what, at + 1)) count += 1;
  return count;
}

export async function startCommitProxy(postgresPort: number): Promise<CommitProxy> {
  const plan: Mishap[] = [];
  const sockets = new Set<Socket>();
  let lateEnded = 0;
  let callsAtOnceMax = 0;

  async function sendLate(postgres: Socket, data: Buffer): Promise<void> {
    do await delay(400);
    while (plan.length > 0 && server.listening);
    postgres.write(data, () => postgres.end());
  }

  const server = createServer((caller) => {
    const postgres = connect(postgresPort, '127.0.0.1');
    let isAnswerLost = false;
    let denial: Denial | null = null;
    for (const [socket, other] of [
      [caller, postgres],
      [postgres, caller],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        if (!isHeld) other.destroy();
      });
    }
    let isHeld = false;
    let callsUnanswered = 0;
    let callName: string | undefined;
    caller.on('data', (data: Buffer) => {
      callName ??= preparedCall.exec(data.toString('latin1'))?.[1];
      const calls = callName ? occurrences(data, Buffer.from(`\0${callName}\0`)) : 0;
      const isCall = calls > 0;
      callsUnanswered += calls;
      callsAtOnceMax = Math.max(callsAtOnceMax, callsUnanswered);
      const mishap = isCall || data.includes(commit) ? plan.shift() : undefined;
      if (mishap === 'lost') {
        caller.destroy();
        return;
      }
      if (mishap === 'late') {
        isHeld = true;
        caller.destroy();
        postgres.once('close', () => (lateEnded += 1));
        void sendLate(postgres, data);
        return;
      }
      if (mishap === 'answerLost') isAnswerLost = true;
      if (mishap === 'denied' || mishap === 'deniedAfter') {
        denial = denyCommit(isCall ? callAnswer : commitAnswer, mishap === 'deniedAfter');
      }
      postgres.write(data);
    });
    postgres.on('data', (data: Buffer) => {
      if (callsUnanswered > 0) callsUnanswered -= occurrences(data, callAnswer);
      if (isAnswerLost) caller.destroy();
      else caller.write(denial ? denial(data) : data);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    plan,
    lateEnded: () => lateEnded,
    callsAtOnceMax: () => callsAtOnceMax,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

type Denial = (data: Buffer) => Buffer;

/** In what PostgreSQL answers, puts an error in the place of the next such answer, or after it. */
function denyCommit(answer: Buffer, isAfter: boolean): Denial {
  const error = isAfter
    ? errorMessage('53100', 'no space left on device')
    : errorMessage('XX000', 'could not commit on a node');
  let isDone = false;
  let rest = Buffer.alloc(0);
  return (data) => {
    rest = Buffer.concat([rest, data]);
    const whole: Buffer[] = [];
    // A message is a letter, the length of what follows, and that.
    for (let length; rest.length >= 5; rest = rest.subarray(length)) {
      length = 1 + rest.readInt32BE(1);
      if (rest.length < length) break;
      const message = rest.subarray(0, length);
      const isCommit = !isDone && message.subarray(5).equals(answer);
      if (!isCommit || isAfter) whole.push(message);
      if (isCommit) whole.push(error);
      isDone ||= isCommit;
    }
    return Buffer.concat(whole);
  };
}

function errorMessage(state: string, words: string): Buffer {
  const fields = Buffer.from(`SERROR\0VERROR\0C${state}\0M${words}\0\0`);
  const message = Buffer.concat([Buffer.from('E'), Buffer.alloc(4), fields]);
  message.writeInt32BE(4 + fields.length, 1);
  return message;
}
