/**
 * A separate program: clients that post without pause, and log what was acknowledged. It shares nothing with the server but the
 * address, so a crash of the server cannot damage the log.
 *
 *   node load.ts URL LOG CLIENTS ROUND KEY…
 *
 * It ends when the server no longer answers, or on SIGTERM. Its last line on standard output counts the answers.
 */
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { postTraces } from '../support/post-traces.ts';
import { openRequestLog } from '../support/request-log.ts';

const [url = '', logPath = '', clients = '1', round = '0', ...keys] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: Number(clients) });
const log = openRequestLog(logPath);
const answers: Record<string, number> = {};
let isStopping = false;
process.once('SIGTERM', () => (isStopping = true));

await Promise.all(Array.from({ length: Number(clients) }, (_, i) => runClient(i)));
log.close();
agent.destroy();
process.stdout.write(`${JSON.stringify(answers)}\n`);

async function runClient(client: number): Promise<void> {
  const team = client % keys.length;
  for (let count = 0; !isStopping; count++) {
    const name = `${round}.${client}.${count}`;
    try {
      const post = { path: '/traces', body: traceNamed(name) } as const;
      const { status, ids } = await postTraces(url, keys[team] ?? '', agent, post);
      answers[status] = (answers[status] ?? 0) + 1;
      if (status === 201) log.acknowledged(team, name, ids);
      // A well-behaved client waits after a 503. This wait is short, to keep up the pressure.
      else await sleep(20);
    } catch {
      // The server is gone. It is unknown whether this request was stored.
      return;
    }
  }
}

function traceNamed(name: string): string {
  return JSON.stringify({
    model: 'gpt-4o',
    input: `question ${name}`,
    output: 'x'.repeat(name.length * 37),
    latency_ms: name.length,
    cost_usd: 0.000123,
    feature_name: 'crash',
    user_identifier: name,
  });
}
