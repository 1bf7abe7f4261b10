import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { draftTrace } from '../../src/core/trace.ts';
import { packWrites, unpackWrites } from '../../src/store/sqlite/writer-messages.ts';
import type { TraceWrite } from '../../src/store/trace-writer.ts';

const writes = fc.array(
  fc.record({
    teamId: fc.constantFrom('one', 'two', 'three'),
    models: fc.array(fc.string({ minLength: 1 }), { maxLength: 3 }),
    session: fc.option(fc.string({ minLength: 1 })),
  }),
  { maxLength: 20 },
);

test('every write arrives at the writer thread with its own team and drafts, whatever its neighbours are', () => {
  fc.assert(
    fc.property(writes, (list) => {
      const sent = list.map(({ teamId, models, session }): TraceWrite => ({
        teamId,
        drafts: models.map((model) => draftTrace({ model, session_id: session })),
        request: null,
        calls: null,
        timesUs: null,
        payloads: null,
      }));
      assert.deepEqual(unpackWrites(structuredClone(packWrites(sent))), sent);
    }),
  );
});
