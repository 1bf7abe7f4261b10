/** A binary array of records, as PostgreSQL reads it in place of a parameter such as `$1::traces[]`. */
export class RecordArray {
  #bytes = Buffer.allocUnsafe(firstBytes);
  #view = viewOf(this.#bytes);
  #at = headerBytes;
  #recordAt = 0;
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** Begins a record. Each of its columns is then added, in the order of the type. */
  begin(columns: number): void {
    this.#need(8);
    this.#count += 1;
    // The length is not known yet.
    this.#recordAt = this.#at;
    this.#view.setInt32(this.#at + 4, columns);
    this.#at += 8;
  }

  end(): void {
    this.#view.setInt32(this.#recordAt, this.#at - this.#recordAt - 4);
  }

  none(type: number): void {
    this.#head(type, noValue, 0);
  }

  bool(value: boolean): void {
    this.#head(oids.bool, 1, 1);
    this.#bytes[this.#at] = value ? 1 : 0;
    this.#at += 1;
  }

  int2(value: number | null): void {
    if (value === null) return this.none(oids.int2);
    this.#head(oids.int2, 2, 2);
    this.#view.setInt16(this.#at, value);
    this.#at += 2;
  }

  int4(value: number | null): void {
    if (value === null) return this.none(oids.int4);
    this.#head(oids.int4, 4, 4);
    this.#view.setInt32(this.#at, value);
    this.#at += 4;
  }

  /** For integers below 2^53. */
  int8(value: number | null): void {
    if (value === null) return this.none(oids.int8);
    this.#head(oids.int8, 8, 8);
    this.#view.setInt32(this.#at, Math.floor(value / 2 ** 32));
    this.#view.setUint32(this.#at + 4, value >>> 0);
    this.#at += 8;
  }

  float8(value: number | null): void {
    if (value === null) return this.none(oids.float8);
    this.#head(oids.float8, 8, 8);
    this.#view.setFloat64(this.#at, value);
    this.#at += 8;
  }

  uuid(value: Uint8Array): void {
    this.#head(oids.uuid, value.length, value.length);
    this.#bytes.set(value, this.#at);
    this.#at += value.length;
  }

  bytea(value: Uint8Array | null): void {
    if (value === null) return this.none(oids.bytea);
    this.#head(oids.bytea, value.length, value.length);
    this.#bytes.set(value, this.#at);
    this.#at += value.length;
  }

  text(value: string | null): void {
    if (value === null) return this.none(oids.text);
    this.#head(oids.text, 0, value.length * utf8BytesPerChar);
    const length = this.#bytes.write(value, this.#at);
    this.#view.setInt32(this.#at - 4, length);
    this.#at += length;
  }

  /** The parameter, for an element type with this id. */
  toBuffer(type: number): Buffer {
    const view = this.#view;
    view.setInt32(0, 1); // dimensions
    view.setInt32(4, 0); // whether an element is null
    view.setInt32(8, type);
    view.setInt32(12, this.#count);
    view.setInt32(16, 1); // the first index
    return this.#bytes.subarray(0, this.#at);
  }

  /** The type and length of the next column, and room for its value. */
  #head(type: number, length: number, bytesMax: number): void {
    this.#need(8 + bytesMax);
    this.#view.setInt32(this.#at, type);
    this.#view.setInt32(this.#at + 4, length);
    this.#at += 8;
  }

  #need(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(2 * this.#bytes.length + bytes);
    larger.set(this.#bytes.subarray(0, this.#at));
    this.#bytes = larger;
    this.#view = viewOf(larger);
  }
}

function viewOf({ buffer, byteOffset, byteLength }: Buffer): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

const firstBytes = 16 * 1024;
const headerBytes = 20;
const noValue = -1;
/** The most bytes that one UTF-16 code unit needs. */
const utf8BytesPerChar = 3;

/** The ids of PostgreSQL's own types, which never change. */
const oids = {
  bool: 16,
  bytea: 17,
  int8: 20,
  int2: 21,
  int4: 23,
  text: 25,
  float8: 701,
  uuid: 2950,
};
