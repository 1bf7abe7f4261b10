/**
 * A program of its own: clients that post to a fleet of servers without pause, and a ledger of what was asked for and what was
 * acknowledged. Each request goes to any one of the servers and is of any one of the teams.
 *
 *   node fleet-load.ts LEDGER CLIENTS KEY…
 *
 * Messages from its parent say where the servers are; it says how many requests were acknowledged so far. A plain request is sent
 * once, whatever becomes of it; one with an Idempotency-Key goes to one server after the other until it is acknowledged. The lines of
 * the ledger stand in fleet-ledger.ts. It ends on SIGTERM, when no request with a key is left without its answer; its last line on
 * standard output counts the answers.
 */
import { appendFileSync, closeSync, openSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { fleetRequest, nonceOf } from './fleet-requests.ts';

const [ledgerPath = '', clients = '1', ...keys] = process.argv.slice(2);
/** Who has a key need not wait for long: the next server then often meets a request that the first one is still at. */
const patienceMs = { keyed: 700, plain: 60_000 };
const pauseMs = 20;

const agent = new Agent({ keepAlive: true });
const ledger = openSync(ledgerPath, 'a');
/** Answers by their status, those that never came, and requests with a key that were sent again. */
const counts: Record<string, number> = { broken: 0, sentAgain: 0 };
let urls: string[] = [];
let isStopping = false;
process.once('SIGTERM', () => (isStopping = true));
// Nobody is left to say where the servers are.
process.once('disconnect', () => process.exit());
await new Promise<void>((resolve) => {
  process.on('message', (message: string[]) => {
    urls = message;
    resolve();
  });
});
const telling = setInterval(() => process.send?.(counts['201'] ?? 0), 20);

await Promise.all(Array.from({ length: Number(clients) }, (_, i) => client(i)));
clearInterval(telling);
closeSync(ledger);
agent.destroy();
process.stdout.write(`${JSON.stringify(counts)}\n`);
process.disconnect?.();

async function client(number: number): Promise<void> {
  for (let n = 0; !isStopping; n++) {
    const team = Math.floor(Math.random() * keys.length);
    const server = Math.floor(Math.random() * urls.length);
    const nonce = nonceOf(number, n);
    appendFileSync(ledger, `? ${team} ${nonce}\n`);
    if (!fleetRequest(nonce).isKeyed) {
      if (!(await isAcknowledged(server, team, nonce))) await sleep(pauseMs);
      continue;
    }
    // Some ask two servers at once, as one whose first question seems lost.
    const times = n % 3 === 0 ? [0, 1] : [0];
    await Promise.all(times.map((i) => insist(server + i, team, nonce)));
  }
}

async function insist(server: number, team: number, nonce: string): Promise<void> {
  for (let next = server; !(await isAcknowledged(next, team, nonce)); next++) {
    await sleep(pauseMs);
    add('sentAgain');
  }
}

function add(name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

/** Sends a request. Where the answer is no, nobody knows whether it was stored. */
async function isAcknowledged(server: number, team: number, nonce: string): Promise<boolean> {
  try {
    const url = urls[server % urls.length] ?? '';
    const { status, code, replayed, ids } = await post(url, keys[team] ?? '', nonce);
    add(String(status));
    const line =
      status === 201 ? `! ${team} ${nonce} ${replayed} ${ids}` : `x ${team} ${nonce} ${code}`;
    appendFileSync(ledger, `${line}\n`);
    return status === 201;
  } catch {
    add('broken');
    return false;
  }
}

interface Reply {
  status: number;
  /** Of a refusal. */
  code: string;
  replayed: string;
  /** Of the traces, with commas. */
  ids: string;
}

function post(url: string, key: string, nonce: string): Promise<Reply> {
  const { path, body, isKeyed } = fleetRequest(nonce);
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...(isKeyed ? { 'idempotency-key': nonce } : {}),
  };
  return new Promise((resolve, reject) => {
    const timeout = patienceMs[isKeyed ? 'keyed' : 'plain'];
    const options = { agent, method: 'POST', headers, timeout };
    const sent = request(`${url}${path}`, options, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('error', reject);
      response.on('end', () => {
        const status = response.statusCode ?? 0;
        const replayed = String(response.headers['idempotent-replayed'] ?? 'false');
        const json = JSON.parse(text) as { id?: string; traces?: { id: string }[]; code?: string };
        const ids = (json.traces ?? [json]).map(({ id }) => id).join();
        resolve({ status, code: json.code ?? '', replayed, ids });
      });
    });
    sent.on('error', reject);
    sent.on('timeout', () => sent.destroy(new Error('no answer in time')));
    sent.end(body);
  });
}
