import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import type { Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { limits } from '../../src/limits.ts';
import type { Database } from '../../src/store/open-store.ts';
import { send, setAttackStage } from './attack-stage.ts';
import type { Attack, AttackStage } from './attack-stage.ts';

const mib = 1024 * 1024;

export function testOverloadAttacks(kind: Database['kind']): void {
  describe(`on ${kind}: memory stays bounded, /healthz answers and another team writes while`, () => {
    let stage: AttackStage;
    let largeId = '';

    before(async () => {
      stage = await setAttackStage(kind);
      const input = 'x'.repeat(5 * mib - 100);
      const stored = await fetch(`${stage.server.url}/traces`, {
        method: 'POST',
        headers: bearer(stage.attacker.key),
        body: JSON.stringify({ model: 'large', input }),
      });
      largeId = ((await stored.json()) as { id: string }).id;
      await stage.fill(manyNames());
    });
    after(() => stage.tearDown());

    const get = (path: string): string =>
      `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${stage.attacker.key}\r\n\r\n`;

    test('50 sockets send 1,500 pipelined requests each and read nothing', (t) =>
      stage.endure(t, async (goOn) => {
        for (let i = 0; i < 50; i++) {
          unread(await stage.socket()).write(
            'GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(1_500),
          );
        }
        await goOn();
      }));

    test('one connection pipelines 500 reads of a trace of 5 MiB and reads nothing', (t) =>
      stage.endure(t, async (goOn) => {
        unread(await stage.socket()).write(get(`/traces/${largeId}`).repeat(500));
        await goOn();
      }));

    test('300 sockets ask for a trace of 5 MiB each and do not read it', (t) =>
      stage.endure(t, async (goOn) => {
        for (let i = 0; i < 300; i++) unread(await stage.socket()).write(get(`/traces/${largeId}`));
        await goOn();
      }));

    test('one key announces bodies of the largest size on idle sockets', (t) =>
      stage.endure(t, async (goOn) => {
        for (let i = 0; i < 20; i++) {
          (await stage.socket()).write(
            `POST /traces/batch HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${stage.attacker.key}\r\n` +
              `content-type: application/json\r\ncontent-length: ${limits.batchBodyBytesMax}\r\n\r\n{`,
          );
        }
        await goOn();
      }));

    test('one key sends the largest bodies at full speed and never finishes them', (t) =>
      stage.endure(t, async (goOn) => {
        const part = `{"traces":[{"model":"m","input":"${'x'.repeat(limits.batchBodyBytesMax - 200)}`;
        for (let i = 0; i < 20; i++) {
          (await stage.socket()).write(
            `POST /traces/batch HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${stage.attacker.key}\r\n` +
              `content-type: application/json\r\ncontent-length: ${limits.batchBodyBytesMax}\r\n\r\n${part}`,
          );
        }
        await goOn();
      }));

    const askAndNotRead: Attack = async (goOn) => {
      for (let i = 0; i < 5; i++) unread(await stage.socket()).write(get('/analytics/by-model'));
      await goOn();
    };

    test('five breakdowns of 100,000 names of 245 characters are asked for before they are rolled up', (t) =>
      stage.endure(t, askAndNotRead));

    test('five breakdowns of 100,000 names of 245 characters are read at once', async (t) => {
      await stage.isListed('/analytics/by-model');
      await stage.endure(t, async () => {
        const statuses = await stage.readElsewhere('/analytics/by-model', 5);
        // On PostgreSQL each takes a connection, and a team gets half of them. On a slow machine the last ones wait too long.
        assert.ok(statuses.filter((status) => status === 200).length >= 2, statuses.join());
        assert.ok(
          statuses.every((status) => status === 200 || status === 503),
          statuses.join(),
        );
      });
    });

    test('five breakdowns of 100,000 names of 245 characters are asked for and not read', (t) =>
      stage.endure(t, askAndNotRead));

    test('bodies of 20 MB are made of empty lists', (t) =>
      stage.endure(t, async () => {
        const agent = new Agent();
        const body = `{"traces":[${'[],'.repeat(6_900_000)}[]]}`;
        const statuses = await Promise.all(
          Array.from({ length: 4 }, () =>
            send(stage.server.url, '/traces/batch', agent, stage.attacker.key, body),
          ),
        );
        agent.destroy();
        assert.ok(statuses.includes(413), statuses.join());
        // A connection that is closed while its body is still being sent may lose the reply, which is status 0.
        assert.ok(
          statuses.every((status) => [413, 503, 0].includes(status)),
          statuses.join(),
        );
      }));
  });
}

function bearer(key: string): Record<string, string> {
  return { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
}

/** Takes nothing from the socket, so that the reply stays with the server. */
function unread(socket: Socket): Socket {
  return socket.pause();
}

function* manyNames() {
  for (let i = 0; i < 100_000; i++) {
    yield { model: `${i}-`.padEnd(245, `model ${i} `) };
  }
}
