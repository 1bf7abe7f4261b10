import assert from 'node:assert/strict';
import { TraceTally, TraceTallyError } from '../../src/index.ts';
import type { RecordOptions, Trace, TraceInput, TraceTallyOptions } from '../../src/index.ts';
import { scriptedFetch } from './scripted-fetch.ts';
import type { SeenRequest } from './scripted-fetch.ts';
import type { LiveServer } from './server.ts';

export interface ScriptedClient {
  client: TraceTally;
  /** Every request of it. */
  seen: SeenRequest[];
  /** Everything that onError received. */
  errors: TraceTallyError[];
  /** A client that reads the same team without the script. */
  reader: TraceTally;
}

/** A client of a fresh team on the real server, with a script for what happens to its first requests. */
export async function scriptedClient(
  server: LiveServer,
  script: Parameters<typeof scriptedFetch>[0] = [],
  options: TraceTallyOptions = {},
): Promise<ScriptedClient> {
  const { fetch, seen } = scriptedFetch(script);
  const errors: TraceTallyError[] = [];
  const apiKey = options.apiKey ?? (await server.freshKey());
  const client = new TraceTally({
    apiKey,
    baseUrl: server.url,
    fetch,
    retryDelayMs: 5,
    retryDelayMaxMs: 100,
    requestTimeoutMs: 120_000,
    closeTimeoutMs: 120_000,
    onError: (error) => void errors.push(error as TraceTallyError),
    ...options,
  });
  const reader = new TraceTally({ apiKey, baseUrl: server.url });
  return { client, seen, errors, reader };
}

/** The trace as stored, by a client that is enabled. */
export async function recorded(
  client: TraceTally,
  trace: TraceInput,
  options?: RecordOptions,
): Promise<Trace> {
  const stored = await client.record(trace, options);
  assert.ok(stored !== null, 'the client is enabled');
  return stored;
}

/** The inputs of all stored traces, oldest first. */
export async function storedInputs(reader: TraceTally): Promise<(string | null | undefined)[]> {
  const inputs: (string | null | undefined)[] = [];
  for await (const { input } of reader.traces.all()) inputs.push(input);
  return inputs.reverse();
}
