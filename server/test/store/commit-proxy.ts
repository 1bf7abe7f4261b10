import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** What befalls the next commit on its way. */
export type Mishap =
  /** It never arrives. */
  | 'lost'
  /** It arrives, and the answer does not. */
  | 'answerLost'
  /** It arrives some time after the caller has seen the connection break. */
  | 'late';

/** Stands between a store and PostgreSQL, and breaks the connection of a commit where a test asks for it. */
export interface CommitProxy {
  port: number;
  /** One mishap for each of the next commits. */
  plan: Mishap[];
  close(): Promise<void>;
}

/** A commit as it goes over the wire: a simple query of its own. */
const commit = Buffer.from('commit\0');

export async function startCommitProxy(postgresPort: number): Promise<CommitProxy> {
  const plan: Mishap[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((caller) => {
    const postgres = connect(postgresPort, '127.0.0.1');
    let isAnswerLost = false;
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
    caller.on('data', (data: Buffer) => {
      const mishap = data.includes(commit) ? plan.shift() : undefined;
      if (mishap === 'lost') {
        caller.destroy();
        return;
      }
      if (mishap === 'late') {
        isHeld = true;
        caller.destroy();
        void delay(400).then(() => postgres.write(data, () => postgres.end()));
        return;
      }
      if (mishap === 'answerLost') isAnswerLost = true;
      postgres.write(data);
    });
    postgres.on('data', (data) => {
      if (isAnswerLost) caller.destroy();
      else caller.write(data);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    plan,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
