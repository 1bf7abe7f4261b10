import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MalformedProtobuf, ProtobufReader } from '../../src/http/protocols/protobuf-reader.ts';

function varintOf(value: bigint): Buffer {
  const list: number[] = [];
  let left = BigInt.asUintN(64, value);
  for (; left >= 0x80n; left >>= 7n) list.push(Number(left & 0x7fn) | 0x80);
  return Buffer.from([...list, Number(left)]);
}

test('a varint of 64 bits is read with its sign, exactly up to 2^53', () => {
  const edges = [0n, 1n, 127n, 128n, 2n ** 28n, 2n ** 31n, 2n ** 32n, 2n ** 35n, 2n ** 53n - 1n];
  for (const edge of edges.flatMap((value) => [value, -value, value + 1n, -value - 1n])) {
    if (edge >= 2n ** 53n || edge <= -(2n ** 53n)) continue;
    assert.equal(BigInt(new ProtobufReader(varintOf(edge)).int64()), edge);
  }
  assert.equal(new ProtobufReader(varintOf(-(2n ** 63n))).int64(), -(2 ** 63));
});

test('nanoseconds become microseconds without a rounding error', () => {
  for (const ns of [
    0n,
    999n,
    1000n,
    1_794_811_986_762_000_000n,
    1_794_811_986_761_999_999n,
    2n ** 64n - 1n,
  ]) {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(ns);
    assert.equal(new ProtobufReader(bytes).thousands(), Number(ns / 1000n));
  }
});

test('a message that is cut off anywhere is malformed, and no read goes past the end', () => {
  const message = Buffer.from('0a04616263640810110102030405060708', 'hex');
  const readAll = (bytes: Buffer): void => {
    const reader = new ProtobufReader(bytes);
    while (reader.next()) reader.skip();
    assert.equal(reader.at, bytes.length);
  };
  readAll(message);
  const ends = new Set([0, 6, 8]);
  for (let length = 0; length < message.length; length++) {
    const part = Buffer.from(message.subarray(0, length));
    if (ends.has(length)) readAll(part);
    else assert.throws(() => readAll(part), MalformedProtobuf, `${length} bytes`);
  }
});

test('groups, field 0 and numbers of more than ten bytes are malformed', () => {
  for (const hex of [
    '0b',
    '0c',
    '0e',
    '00',
    '08ffffffffffffffffffffff01',
    'ffffffffffffffffffffff',
  ]) {
    const reader = new ProtobufReader(Buffer.from(hex, 'hex'));
    assert.throws(() => {
      while (reader.next()) reader.skip();
    }, MalformedProtobuf);
  }
});
