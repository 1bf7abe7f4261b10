/**
 * A program of its own: clients that post with an Idempotency-Key, and a ledger of what was asked for and what was acknowledged. What an earlier
 * run has no answer to is sent first, with the same key.
 *
 *   node once-load.ts URL LEDGER CLIENTS ROUND KEY…
 *
 * Lines of the ledger: `? TEAM NONCE` before a request is sent for the first time; `! TEAM NONCE REPLAYED IDS` when a 201 has been read to its end. It
 * ends by itself when the server no longer answers, or on SIGTERM, or, in the round `last`, when nothing is left to repeat; its last line on standard
 * output counts the answers.
 */
import { appendFileSync, closeSync, openSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { readOnceLedger } from './once-ledger.ts';
import { onceRequest } from './once-requests.ts';

const [url = '', ledgerPath = '', clients = '1', round = '0', ...keys] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: Number(clients) });
const unanswered = readOnceLedger(ledgerPath).filter(({ acknowledged }) => acknowledged === null);
const ledger = openSync(ledgerPath, 'a');
const answers: Record<string, number> = {};
let isStopping = false;
process.once('SIGTERM', () => (isStopping = true));

await Promise.all(Array.from({ length: Number(clients) }, (_, i) => client(i)));
closeSync(ledger);
agent.destroy();
process.stdout.write(`${JSON.stringify(answers)}\n`);

async function client(number: number): Promise<void> {
  for (let count = 0; !isStopping;) {
    const old = unanswered.shift();
    if (!old && round === 'last') return;
    const { team, nonce } = old ?? {
      team: number % keys.length,
      nonce: `${round}.${number}.${count++}`,
    };
    if (!old) appendFileSync(ledger, `? ${team} ${nonce}\n`);
    try {
      const { status, replayed, ids } = await post(keys[team] ?? '', nonce);
      answers[status] = (answers[status] ?? 0) + 1;
      if (status === 201) appendFileSync(ledger, `! ${team} ${nonce} ${replayed} ${ids.join()}\n`);
      else await new Promise((resolve) => setTimeout(resolve, 20));
    } catch {
      // The server is gone. Whether this one was stored, nobody was told.
      return;
    }
  }
}

interface Reply {
  status: number;
  replayed: string;
  ids: string[];
}

function post(key: string, nonce: string): Promise<Reply> {
  const { path, body, isPacked } = onceRequest(nonce);
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'content-length': body.length,
    'idempotency-key': nonce,
    ...(isPacked ? { 'content-encoding': 'gzip' } : {}),
  };
  return new Promise((resolve, reject) => {
    const sent = request(`${url}${path}`, { agent, method: 'POST', headers }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
      response.on('error', reject);
      response.on('end', () => {
        const status = response.statusCode ?? 0;
        const replayed = String(response.headers['idempotent-replayed'] ?? 'false');
        if (status !== 201) return resolve({ status, replayed, ids: [] });
        const json = JSON.parse(text) as { id: string; traces?: { id: string }[] };
        resolve({ status, replayed, ids: (json.traces ?? [json]).map(({ id }) => id) });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
