/**
 * A separate program: clients that post to a fleet of servers without pause, and log what they sent and what was acknowledged. Each
 * request goes to a random server. Half of them belong to the first team, the others to random ones.
 *
 *   node fleet-load.ts LOG CLIENTS SEED KEY…
 *
 * Messages from its parent say where the servers are; it sends back how many requests were acknowledged so far. A plain request is
 * sent once, whatever the answer; an idempotent one goes to one server after the other until it is acknowledged. It ends on SIGTERM,
 * when every idempotent request has its answer. Its last line on standard output counts the answers.
 */
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { postTraces } from '../support/post-traces.ts';
import { openRequestLog } from '../support/request-log.ts';
import { seededRandom } from '../support/seeded-random.ts';
import { answerMsMax, fleetPost, requestName } from './fleet-requests.ts';

const [logPath = '', clients = '1', seed = '0', ...keys] = process.argv.slice(2);
const pauseMs = 20;

const agent = new Agent({ keepAlive: true });
const log = openRequestLog(logPath);
/** Answers by their status, those that never came, and idempotent requests that were sent again. */
const counts: Record<string, number> = { broken: 0, sentAgain: 0 };
let urls: string[] = [];
let isStopping = false;
process.once('SIGTERM', () => (isStopping = true));
// Without its parent it does not learn where the servers are.
process.once('disconnect', () => process.exit());
await new Promise<void>((resolve) => {
  process.on('message', (message: string[]) => {
    urls = message;
    resolve();
  });
});
const reporting = setInterval(() => process.send?.(counts['201'] ?? 0), 20);

await Promise.all(Array.from({ length: Number(clients) }, (_, i) => runClient(i)));
clearInterval(reporting);
log.close();
agent.destroy();
process.stdout.write(`${JSON.stringify(counts)}\n`);
process.disconnect?.();

async function runClient(client: number): Promise<void> {
  const random = seededRandom(Number(seed) + client);
  for (let n = 0; !isStopping; n++) {
    const team = random() < 0.5 ? 0 : Math.floor(random() * keys.length);
    const server = Math.floor(random() * urls.length);
    const name = requestName(client, n);
    log.sent(team, name);
    if (!fleetPost(name).isIdempotent) {
      if (!(await isAcknowledged(server, team, name))) await sleep(pauseMs);
      continue;
    }
    // Some ask two servers at once, like a client that gave up on its first request.
    const attempts = n % 3 === 0 ? [0, 1] : [0];
    await Promise.all(attempts.map((i) => repeatUntilAcknowledged(server + i, team, name)));
  }
}

async function repeatUntilAcknowledged(server: number, team: number, name: string): Promise<void> {
  for (let next = server; !(await isAcknowledged(next, team, name, next - server)); next++) {
    await sleep(pauseMs);
    count('sentAgain');
  }
}

function count(name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

/** Sends a request. If the result is false, it is unknown whether the request was stored. On a busy machine a retry waits longer. */
async function isAcknowledged(
  server: number,
  team: number,
  name: string,
  retries = 0,
): Promise<boolean> {
  try {
    const url = urls[server % urls.length] ?? '';
    const post = fleetPost(name);
    const withinMs = Math.min((post.withinMs ?? 0) * 2 ** Math.min(retries, 10), answerMsMax.plain);
    const reply = await postTraces(url, keys[team] ?? '', agent, { ...post, withinMs });
    count(String(reply.status));
    if (reply.status === 201) log.acknowledged(team, name, reply.ids, reply.isReplay);
    else log.failed(team, name, reply.code);
    return reply.status === 201;
  } catch {
    count('broken');
    return false;
  }
}
