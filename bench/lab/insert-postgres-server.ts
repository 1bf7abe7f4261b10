/**
 * The control G: a bare server that stores each JSON body as one row in PostgreSQL and sends it back. Bodies that arrive while an insert
 * is running share the next one. It checks nothing and has no index except the primary key. Argument: the URL of a database.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';

const client = new pg.Client({ connectionString: process.argv[2] ?? '' });
await client.connect();
await client.query(
  'create table bench_bodies (id bigint generated always as identity primary key, body text not null)',
);
const insert = {
  name: 'insert',
  text: 'insert into bench_bodies (body) select body from unnest($1::text[]) as u(body)',
};

interface Waiting {
  body: string;
  answer(): void;
}

let waiting: Waiting[] = [];
let isRunning = false;

async function storeWaiting(): Promise<void> {
  if (isRunning) return;
  isRunning = true;
  while (waiting.length > 0) {
    const taken = waiting;
    waiting = [];
    await client.query({ ...insert, values: [taken.map(({ body }) => body)] });
    for (const { answer } of taken) answer();
  }
  isRunning = false;
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = JSON.stringify(JSON.parse(Buffer.concat(chunks).toString('utf8')));
    function answer(): void {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(body);
    }
    waiting.push({ body, answer });
    // At the end of the turn, so that the requests of one turn are stored together.
    setImmediate(() => void storeWaiting());
  });
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`listens on http://127.0.0.1:${port}\n`);
});
process.once('SIGTERM', () => process.exit(0));
