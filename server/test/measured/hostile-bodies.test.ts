import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { limits } from '../../src/limits.ts';
import { setAttackStage } from '../security/attack-stage.ts';
import type { AttackStage } from '../security/attack-stage.ts';
import { generatedBodies, knownBodies } from '../support/hostile-bodies.ts';
import type { HostileBody } from '../support/hostile-bodies.ts';
import { callService } from '../support/http-call.ts';

/** Of those that are generated; `npm run bench -- hostile` sends all of them, and measures how long others wait. */
const everyNth = 12;
const copies = 3;
const answerMsMax = 120_000;

describe('memory stays bounded, and another team is served while bodies that were made to be slow are decoded:', () => {
  let stage: AttackStage;
  before(async () => {
    stage = await setAttackStage('sqlite');
  });
  after(() => stage.tearDown());

  async function send({ path, headers, body }: HostileBody): Promise<void> {
    const agent = new Agent();
    const bytes = body();
    const { key } = stage.attacker;
    const statuses = await Promise.all(
      Array.from({ length: copies }, () =>
        callService(stage.server.url, {
          method: 'POST',
          path,
          key,
          headers,
          body: bytes,
          agent,
          withinMs: answerMsMax,
        }).then(
          (reply) => reply.status,
          // The server closes the connection of a body that is too large while it is still being sent.
          (error: NodeJS.ErrnoException) =>
            ['EPIPE', 'ECONNRESET'].includes(error.code ?? '') ? 413 : Promise.reject(error),
        ),
      ),
    );
    agent.destroy();
    for (const status of statuses) {
      assert.ok([200, 201, 400, 413, 422, 503].includes(status), `status ${status}`);
    }
  }

  const generated = [...generatedBodies()].filter((_, i) => i % everyNth === 0);
  const groups = { 'known ones': [...knownBodies()], 'generated ones': generated };
  for (const [name, bodies] of Object.entries(groups)) {
    test(`${bodies.length} ${name}`, (t) =>
      stage.endure(t, async (goOn) => {
        for (const body of bodies) await send(body);
        await goOn();
      }));
  }

  test('20 bodies of 20 MB whose callers hang up while they wait', (t) =>
    stage.endure(t, async (goOn) => {
      const slow = [...knownBodies()].find(({ name }) => name.startsWith('events of a span'));
      assert.ok(slow);
      const sending = Array.from({ length: 4 }, () => send(slow));
      const body = Buffer.alloc(limits.batchBodyBytesMax, ' ');
      const head =
        `POST /traces/batch HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${stage.attacker.key}\r\n` +
        `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
      for (let i = 0; i < 20; i++) {
        const socket = await stage.socket();
        socket.write(head);
        await new Promise((resolve) => socket.write(body, resolve));
        socket.destroy();
      }
      await goOn();
      await Promise.all(sending);
    }));
});
