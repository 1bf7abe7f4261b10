import { makePostgres } from './postgres.ts';
import type { TestPostgres } from './postgres.ts';

/** For `node --test --test-global-setup`: one PostgreSQL for all files of the run, on which every test service keeps its data. */
let postgres: TestPostgres | null = null;

export async function globalSetup(): Promise<void> {
  // Files that run side by side share its connections.
  postgres = makePostgres({ max_connections: '500' });
  await postgres.start();
  process.env['TEST_POSTGRES'] = postgres.url('postgres');
}

export async function globalTeardown(): Promise<void> {
  const server = postgres;
  // Where this fails Node calls it again and again.
  postgres = null;
  if (!server) return;
  try {
    const made = await server.sql(
      server.url('postgres'),
      `select datname from pg_database where datname like 'tracetally-test-%'`,
    );
    // A run that lost its way to PostgreSQL would only show once more what it shows on SQLite.
    if (made.length === 0) refuse('No test has used PostgreSQL.');
  } finally {
    await server.stop();
  }
}

/** An error that is thrown here would not be shown. */
function refuse(reason: string): void {
  process.stderr.write(`${reason}\n`);
  process.exitCode = 1;
}
