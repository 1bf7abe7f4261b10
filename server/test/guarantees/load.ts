/**
 * A program of its own: clients that post without pause, and a ledger of what was acknowledged. It knows nothing of the server but its
 * address, so nothing that happens to the server can touch the ledger. A line is written when a 201 has been read to its end.
 *
 *   node load.ts URL LEDGER CLIENTS ROUND KEY…
 *
 * It ends by itself when the server no longer answers, or on SIGTERM; its last line on standard output counts the answers.
 */
import { appendFileSync, closeSync, openSync } from 'node:fs';
import { Agent, request } from 'node:http';

const [url = '', ledgerPath = '', clients = '1', round = '0', ...keys] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: Number(clients) });
const ledger = openSync(ledgerPath, 'a');
const answers: Record<string, number> = {};
let isStopping = false;
process.once('SIGTERM', () => (isStopping = true));

await Promise.all(Array.from({ length: Number(clients) }, (_, i) => client(i)));
closeSync(ledger);
agent.destroy();
process.stdout.write(`${JSON.stringify(answers)}\n`);

async function client(number: number): Promise<void> {
  const team = number % keys.length;
  for (let count = 0; !isStopping; count++) {
    const nonce = `${round}.${number}.${count}`;
    try {
      const { status, id } = await post(keys[team] ?? '', nonce);
      answers[status] = (answers[status] ?? 0) + 1;
      if (status === 201) appendFileSync(ledger, `${team} ${id} ${nonce}\n`);
      // An honest client waits when it is told to; the shortest wait keeps up the pressure.
      else await new Promise((resolve) => setTimeout(resolve, 20));
    } catch {
      // The server is gone. Whether this one was stored, nobody was told.
      return;
    }
  }
}

function post(key: string, nonce: string): Promise<{ status: number; id: string }> {
  const body = JSON.stringify({
    model: 'gpt-4o',
    input: `question ${nonce}`,
    output: 'x'.repeat(nonce.length * 37),
    latency_ms: nonce.length,
    cost_usd: 0.000123,
    feature_name: 'crash',
    user_identifier: nonce,
  });
  return new Promise((resolve, reject) => {
    const sent = request(
      `${url}/traces`,
      {
        agent,
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
        },
      },
      (response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => (text += chunk.toString()));
        response.on('error', reject);
        response.on('end', () => {
          const status = response.statusCode ?? 0;
          const id = status === 201 ? (JSON.parse(text) as { id: string }).id : '';
          resolve({ status, id });
        });
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}
