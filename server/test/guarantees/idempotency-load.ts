/**
 * A separate program: clients that post with an Idempotency-Key, and log what they sent and what was acknowledged. Requests of an
 * earlier run that have no answer are sent first, with the same key.
 *
 *   node idempotency-load.ts URL LOG CLIENTS ROUND KEY…
 *
 * It ends when the server no longer answers, on SIGTERM, or, in the round `last`, when nothing is left to repeat. Its last line on
 * standard output counts the answers.
 */
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { postTraces } from '../support/post-traces.ts';
import { openRequestLog, readRequestLog } from '../support/request-log.ts';
import { idempotentPost } from './idempotency-requests.ts';

const [url = '', logPath = '', clients = '1', round = '0', ...keys] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: Number(clients) });
const unanswered = readRequestLog(logPath).filter(({ acknowledged }) => acknowledged.length === 0);
const log = openRequestLog(logPath);
const answers: Record<string, number> = {};
let isStopping = false;
process.once('SIGTERM', () => (isStopping = true));

await Promise.all(Array.from({ length: Number(clients) }, (_, i) => runClient(i)));
log.close();
agent.destroy();
process.stdout.write(`${JSON.stringify(answers)}\n`);

async function runClient(client: number): Promise<void> {
  for (let count = 0; !isStopping;) {
    const old = unanswered.shift();
    if (!old && round === 'last') return;
    const { team, name } = old ?? {
      team: client % keys.length,
      name: `${round}.${client}.${count++}`,
    };
    if (!old) log.sent(team, name);
    try {
      const post = idempotentPost(name);
      const { status, isReplay, ids } = await postTraces(url, keys[team] ?? '', agent, post);
      answers[status] = (answers[status] ?? 0) + 1;
      if (status === 201) log.acknowledged(team, name, ids, isReplay);
      else await sleep(20);
    } catch {
      // The server is gone. It is unknown whether this request was stored.
      return;
    }
  }
}
