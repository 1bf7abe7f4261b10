import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { limits } from '../../src/limits.ts';
import { setStage } from '../guarantees/crash-lab.ts';

const mib = 1024 * 1024;
const clients = 40;
/** As for plain bodies that wait: what the budget admits, a few times over for what is under way and for garbage. */
const grownMbMax = (5 * limits.bodiesBytesMax) / 1e6;

/** Spaces, as one member of gzip: a thousandth of its size. */
const spaces = (megabytes: number): Buffer => gzipSync(Buffer.alloc(megabytes * mib, ' '));

const bombs: Readonly<Record<string, () => Buffer>> = {
  '100 MB in one member': () => spaces(100),
  // It is within the limit, and its trailer announces one byte: the budget must count what is really unpacked.
  '19 MB that announce one byte': () => Buffer.concat([spaces(19), gzipSync('x')]),
};

for (const [what, make] of Object.entries(bombs)) {
  test(`${clients} concurrent clients with gzip bombs do not exhaust the memory: ${what}`, async (t) => {
    const bomb = make();
    assert.ok(bomb.length < mib / 4, `${bomb.length} bytes`);
    const { server, key, tearDown } = await setStage();
    const agent = new Agent({ keepAlive: true });
    const post = (body: Buffer, path: string): Promise<number> =>
      postPacked(`${server.url}${path}`, key, body, agent);
    try {
      assert.equal(await post(gzipSync('{"model":"m"}'), '/traces'), 201);
      const before = peakBytes(server.child.pid);
      const statuses = await Promise.all(
        Array.from({ length: clients }, (_, i) =>
          post(bomb, i % 4 === 0 ? '/traces' : '/traces/batch'),
        ),
      );
      const grownMb = (peakBytes(server.child.pid) - before) / 1e6;
      t.diagnostic(`${bomb.length} bytes packed; memory grew by ${Math.round(grownMb)} MB`);
      assert.ok(
        statuses.every((status) => [400, 413, 503].includes(status)),
        [...new Set(statuses)].join(),
      );
      assert.ok(grownMb < grownMbMax, `memory grew by ${Math.round(grownMb)} MB`);
      assert.equal(await post(gzipSync('{"model":"m"}'), '/traces'), 201);
    } finally {
      agent.destroy();
      await tearDown();
    }
  });
}

/** The most that was ever resident. */
function peakBytes(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}

function postPacked(url: string, key: string, body: Buffer, agent: Agent): Promise<number> {
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'content-encoding': 'gzip',
    'content-length': body.length,
  };
  return new Promise((resolve, reject) => {
    request(url, { agent, method: 'POST', headers }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
    })
      // The server closes a connection that has waited too long.
      .on('error', (error: NodeJS.ErrnoException) =>
        error.code === 'ECONNRESET' ? resolve(503) : reject(error),
      )
      .end(body);
  });
}
