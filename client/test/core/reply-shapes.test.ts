import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { TraceTally } from '../../src/index.ts';
import type { Trace, TraceTallyError } from '../../src/index.ts';
import { recorded } from '../support/scripted-client.ts';
import { startServer } from '../support/server.ts';
import type { LiveServer } from '../support/server.ts';

let server: LiveServer;
let real: TraceTally;
let trace: Trace;
before(async () => {
  server = await startServer();
  real = new TraceTally({ apiKey: await server.freshKey(), baseUrl: server.url });
  trace = await recorded(real, { model: 'm', input: 'i', feature_name: 'f' });
});
after(() => server.stop());

type Ask = (client: TraceTally) => Promise<unknown>;

const asks: Readonly<Record<string, Ask>> = {
  record: (client) => client.record({ model: 'm', input: 'i', feature_name: 'f' }),
  get: (client) => client.traces.get(trace.id),
  cost: (client) => client.traces.cost(trace.id),
  list: (client) => client.traces.list({ omit: ['input', 'output', 'error_message'] }),
  overview: (client) => client.analytics.overview(),
  byModel: (client) => client.analytics.byModel(),
  byFeature: (client) => client.analytics.byFeature(),
  daily: (client) => client.analytics.daily(),
};

/** A client whose every reply is this value. */
function clientOf(reply: unknown, errors: unknown[] = []): TraceTally {
  return new TraceTally({
    apiKey: 'k',
    fetch: () => Promise.resolve(Response.json(reply, { status: 201 })),
    maxRetries: 0,
    maxRetryAgeMs: 0,
    onError: (error) => void errors.push(error),
  });
}

/** Every way to break one field of the value, or of what it holds. */
function* broken(value: unknown): Generator<unknown, void, undefined> {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      for (const other of broken(item)) yield value.with(index, other);
    }
    yield Object.fromEntries(value.entries());
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, item] of Object.entries(value)) {
      const { [name]: _dropped, ...rest } = value as Record<string, unknown>;
      yield rest;
      for (const other of broken(item)) yield { ...value, [name]: other };
    }
  } else {
    // A null may also be a number or a text, but never a list.
    yield typeof value === 'number' ? String(value) : value === null ? [] : 7;
  }
}

test('a reply with a missing field or a field of another type is a bad_reply', async () => {
  let count = 0;
  for (const [name, ask] of Object.entries(asks)) {
    const good = await ask(real);
    assert.deepEqual(await ask(clientOf(good)), good, `${name} takes what the server sends`);
    for (const bad of [...broken(good), {}, [{}], { traces: [] }, [null], { ok: true }]) {
      count += 1;
      await assert.rejects(
        ask(clientOf(bad)),
        (error: TraceTallyError) => error.code === 'bad_reply' && error.status === 201,
        `${name}: ${JSON.stringify(bad)}`,
      );
    }
  }
  assert.ok(count > 100, `${count} replies`);
});

test('record rejects a reply with another model', async () => {
  await assert.rejects(
    clientOf({ ...trace, model: 'other' }).record({ model: 'm' }),
    (error: TraceTallyError) => error.code === 'bad_reply',
  );
});

test('record accepts its trace with any model name', async () => {
  for (const [model, stored] of [
    ['\ud800 half', '\ufffd half'],
    ['\ufeffmark', '\ufeffmark'],
    ['ünï 🦉', 'ünï 🦉'],
  ] as const) {
    assert.equal((await recorded(real, { model })).model, stored);
  }
});

test('a batch whose reply has no stored traces does not count as sent', async () => {
  const { input: _input, output: _output, ...listed } = trace;
  const replies: [reply: unknown, sent: number][] = [
    [{ traces: [listed], rejected: [] }, 1],
    [{ traces: [trace], rejected: [] }, 1],
    [{ traces: [null], rejected: [] }, 0],
    [{ traces: [{}], rejected: [] }, 0],
    [{ traces: [{ ...listed, id: 7 }], rejected: [] }, 0],
    [{ traces: [], rejected: [null] }, 0],
    [{ traces: [], rejected: [{ index: 0, errors: [null] }] }, 0],
    [{ traces: [], rejected: [] }, 0],
    [{ traces: [listed, listed], rejected: [] }, 0],
  ];
  for (const [reply, sent] of replies) {
    const errors: TraceTallyError[] = [];
    const client = clientOf(reply, errors);
    client.enqueue({ model: 'm' });
    await client.flush();
    assert.equal(client.stats().sent, sent, JSON.stringify(reply));
    assert.equal(client.stats().failed, 1 - sent, JSON.stringify(reply));
    assert.deepEqual(
      errors.map(({ code }) => code),
      sent === 1 ? [] : ['bad_reply'],
    );
  }
});
