import assert from 'node:assert/strict';
import { request } from 'node:http';
import { generateKey } from '../../src/core/api-key.ts';
import { fromFreshAddress } from '../http/helpers.ts';
import { us } from '../support/service.ts';
import type { TestService } from '../support/service.ts';
import type { Asked, Caller } from './random-requests.ts';

/** A reply without what differs between any two: ids are replaced by the order of their appearance. */
export interface Reply {
  status: number;
  headers: readonly string[];
  body: string;
}

const unknownKey = generateKey();
const missingId = '00000000-0000-7000-8000-000000000000';
/** In the middle of the moments at which requests come. */
const briefUntilUs = us('2026-02-26T00:00:00Z');
let conversations = 0;

/** Two services that get the same requests, each from its own teams, and whose replies must be byte-equal. */
export class Twins {
  readonly #sides: readonly Side[];

  constructor(services: readonly TestService[]) {
    const name = `conversation-${++conversations}`;
    // Of its own, since each may fail only so often.
    const address = fromFreshAddress();
    this.#sides = services.map((service) => new Side(service, name, address));
  }

  async ask(asked: Asked): Promise<Reply> {
    const [left, right] = await Promise.all(this.#sides.map((side) => side.ask(asked)));
    assert.ok(left && right);
    const what = `${asked.method} ${asked.path} of ${asked.caller}`;
    assert.equal(right.status, left.status, `${what}: ${left.body}\n${right.body}`.slice(0, 2000));
    assert.deepEqual(right.headers, left.headers, what);
    if (right.body !== left.body) assert.fail(`${what}: ${firstDifference(left.body, right.body)}`);
    return left;
  }
}

/** One of the two, as this conversation knows it. */
class Side {
  readonly #service: TestService;
  readonly #name: string;
  readonly #address: Record<string, string>;
  readonly #keys = new Map<Caller, Promise<string | null>>();
  /** The place of each id that has appeared. */
  readonly #ids = new Map<string, number>();

  constructor(service: TestService, name: string, address: Record<string, string>) {
    this.#service = service;
    this.#name = name;
    this.#address = address;
  }

  async ask({ caller, method, path, headers, body }: Asked): Promise<Reply> {
    const key = await this.#keyOf(caller);
    return this.#comparable(
      await exchange(this.#service.url, {
        method,
        path: path.replace(/\{(id|ID):(\d+)\}/, (_, form, nth) => this.#idAt(form, Number(nth))),
        headers: {
          ...this.#address,
          ...(key === null ? {} : { authorization: `Bearer ${key}` }),
          ...headers,
        },
        body,
      }),
    );
  }

  #idAt(form: string, nth: number): string {
    const id = [...this.#ids.keys()][nth % this.#ids.size] ?? missingId;
    return form === 'ID' ? id.toUpperCase() : id;
  }

  #keyOf(caller: Caller): Promise<string | null> {
    let key = this.#keys.get(caller);
    if (!key) {
      key = this.#makeKey(caller);
      this.#keys.set(caller, key);
    }
    return key;
  }

  async #makeKey(caller: Caller): Promise<string | null> {
    if (caller === 'nobody') return null;
    if (caller === 'unknown') return unknownKey;
    const team = caller === 'stranger' ? `${this.#name}-other` : this.#name;
    const { key, keyId } = await this.#service.keyFor(team, {
      scope: caller === 'ingest' || caller === 'read' ? caller : 'full',
      expiresAtUs: caller === 'brief' ? briefUntilUs : null,
    });
    if (caller === 'revoked') await this.#service.beside.revokeKey(keyId, 1);
    return key;
  }

  #comparable({ status, headers, body }: Reply): Reply {
    const requestId = valueOf(headers, 'x-request-id');
    assert.match(requestId, /^[0-9a-f]{12}-[0-9a-z]+$/);
    const shown = (text: string): string =>
      text
        .replaceAll(requestId, '{request}')
        .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => {
          const place = this.#ids.get(id) ?? this.#ids.size;
          this.#ids.set(id, place);
          return `{id ${place}}`;
        });
    const told = headers.filter((line) => !line.startsWith('date: '));
    return { status, headers: told.map(shown), body: shown(body) };
  }
}

function valueOf(headers: readonly string[], name: string): string {
  return headers.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? '';
}

/** One request over a new socket. Each byte of the reply's body is one character here. */
function exchange(url: string, { method, path, headers, body }: Omit<Asked, 'caller'>) {
  const length = body === null ? {} : { 'content-length': Buffer.byteLength(body) };
  return new Promise<Reply>((resolve, reject) => {
    const options = { method, path, agent: false, headers: { ...length, ...headers } };
    const outgoing = request(url, options, (incoming) => {
      const pieces: Buffer[] = [];
      incoming.on('error', reject);
      incoming.on('data', (piece: Buffer) => pieces.push(piece));
      incoming.on('end', () => {
        const raw = incoming.rawHeaders;
        resolve({
          status: incoming.statusCode ?? 0,
          headers: raw.flatMap((name, i) =>
            i % 2 === 0 ? `${name.toLowerCase()}: ${raw[i + 1]}` : [],
          ),
          body: Buffer.concat(pieces).toString('latin1'),
        });
      });
    });
    outgoing.on('error', reject);
    outgoing.end(body ?? undefined);
  });
}

/** Where two long texts part, since a whole comparison of megabytes would take minutes. */
function firstDifference(left: string, right: string): string {
  let at = 0;
  while (left[at] === right[at]) at += 1;
  const around = (text: string): string =>
    JSON.stringify(text.slice(Math.max(0, at - 60), at + 60));
  return `the bodies differ at byte ${at}: ${around(left)} and ${around(right)}`;
}
