/**
 * The control P: a bare server whose only route runs `select 1` on PostgreSQL and answers in JSON, with as many connections as the
 * service uses for reads. Argument: the URL of a database.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import { limits } from '../../server/src/limits.ts';

const pool = new pg.Pool({
  connectionString: process.argv[2] ?? '',
  max: limits.postgresReadersMax,
});
const server = createServer((_request, response) => {
  void pool.query('select 1 as one').then(({ rows }) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(rows[0]));
  });
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`listens on http://127.0.0.1:${port}\n`);
});
process.once('SIGTERM', () => process.exit(0));
