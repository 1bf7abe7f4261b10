import { Agent } from 'node:http';
import { callService } from '../../server/test/support/http-call.ts';

export interface FloodRequest {
  path: string;
  headers: Readonly<Record<string, string>>;
  body: Buffer;
}

/** How the requests of a flood were answered: the count of each status. */
export type FloodAnswers = Record<string, number>;

/** Sends the request over and over on several connections, each as soon as the last one was answered, until the time is over. */
export async function flood(
  url: string,
  key: string,
  { path, headers, body }: FloodRequest,
  { connections, untilMs }: { connections: number; untilMs: number },
): Promise<FloodAnswers> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const answers: FloodAnswers = {};
  async function work(): Promise<void> {
    do {
      const sent = { method: 'POST', path, key, headers, body, agent, withinMs: 120_000 } as const;
      const status = await callService(url, sent).then(
        (reply) => String(reply.status),
        () => 'none',
      );
      answers[status] = (answers[status] ?? 0) + 1;
    } while (Date.now() < untilMs);
  }
  await Promise.all(Array.from({ length: connections }, work));
  agent.destroy();
  return answers;
}

export function listAnswers(answers: FloodAnswers): string {
  const all = Object.entries(answers).map(([status, count]) => `${count} × ${status}`);
  return all.join(', ');
}
