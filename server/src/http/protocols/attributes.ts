import { limits } from '../../limits.ts';
import { parseJson } from '../decoding/bounded-json.ts';
import { callTable, indexedPrefixes, jsonAttributes } from './call-table.ts';
import type { Row, RowIndex } from './call-table.ts';
import { isObject } from './signal.ts';
import type { AttributeValue, Attributes, IndexedAttribute } from './signal.ts';

/** The rows of the table as numbers, so that the attributes of a signal fit into two arrays. */
const rows = Object.keys(callTable) as readonly Row[];
export const rowCount = rows.length;
export const rowIndex = Object.fromEntries(rows.map((row, i) => [row, i])) as Readonly<
  Record<Row, RowIndex>
>;
export const namesByRow: readonly (readonly string[])[] = Object.values(callTable);

/** Where an attribute belongs. A name may be in several rows. */
interface Place {
  row: RowIndex;
  rank: number;
}

const placesByName = new Map<string, Place[]>();
for (const [row, names] of namesByRow.entries()) {
  for (const [rank, name] of names.entries()) {
    placesByName.getOrInsertComputed(name, () => []).push({ row, rank });
  }
}

const prefixes: readonly string[] = Object.values(indexedPrefixes).flat();
/** Longer names are not read: none in the table is that long, and building paths of long names would take forever. */
export const nameCharsMax = 200;

/** Marks a row without a value. */
export const noRank = 255;

/** Collects the attributes of one signal that the table names, and of each row the preferred one. Values are not read yet. */
export class AttributeSlots {
  readonly ranks = new Uint8Array(rowCount).fill(noRank);
  readonly raws: unknown[] = Array.from({ length: rowCount });
  indexed: IndexedAttribute[] = [];
  json: IndexedAttribute[] = [];

  clear(): void {
    this.ranks.fill(noRank);
    if (this.indexed.length > 0) this.indexed = [];
    if (this.json.length > 0) this.json = [];
  }

  set(name: string, raw: unknown): void {
    if (name.length > nameCharsMax) return;
    const places = placesByName.get(name);
    if (places) {
      for (const { row, rank } of places) {
        if (rank > (this.ranks[row] as number)) continue;
        this.ranks[row] = rank;
        this.raws[row] = raw;
      }
    } else if (jsonAttributes.has(name)) {
      this.json.push({ name, raw });
    } else if (prefixes.some((prefix) => name.startsWith(prefix))) {
      this.indexed.push({ name, raw });
    }
  }
}

/** A value that is already read. */
export class ReadValue {
  readonly value: AttributeValue;

  constructor(value: AttributeValue) {
    this.value = value;
  }
}

/** Attributes whose values are read by `read` when they are needed. */
export class SlotAttributes implements Attributes {
  readonly slots = new AttributeSlots();
  readonly #read: (raw: unknown) => AttributeValue;

  constructor(read: (raw: unknown) => AttributeValue) {
    this.#read = read;
  }

  get indexed(): readonly IndexedAttribute[] {
    return this.slots.indexed;
  }

  rank(row: RowIndex): number {
    return this.slots.ranks[row] as number;
  }

  value(row: RowIndex): AttributeValue | undefined {
    return this.slots.ranks[row] === noRank ? undefined : this.#valueOf(this.slots.raws[row]);
  }

  /** Reads all values now. The signals of a resource share its values, and a long value must not be read again for each signal. */
  readAll(): void {
    for (const [row, rank] of this.slots.ranks.entries()) {
      if (rank === noRank) continue;
      this.slots.raws[row] = new ReadValue(this.#valueOf(this.slots.raws[row]));
    }
  }

  indexedValue({ raw }: IndexedAttribute): AttributeValue {
    return this.#valueOf(raw);
  }

  /** Adds what is inside of attributes that hold a JSON object. Call it when all attributes are set. */
  unfoldJson(): void {
    for (const { name, raw } of this.slots.json) {
      const object = objectOf(this.#valueOf(raw));
      if (object !== null) this.#unfold(name, object, 1);
    }
  }

  #unfold(name: string, object: Readonly<Record<string, AttributeValue>>, depth: number): void {
    for (const [key, value] of Object.entries(object)) {
      if (name.length + key.length >= nameCharsMax) continue;
      if (isObject(value) && depth < unfoldedDepthMax)
        this.#unfold(`${name}.${key}`, value, depth + 1);
      else if (!isEmpty(value)) this.slots.set(`${name}.${key}`, new ReadValue(value));
    }
  }

  #valueOf(raw: unknown): AttributeValue {
    return raw instanceof ReadValue ? raw.value : this.#read(raw);
  }
}

/** `ai.response.providerMetadata` has the usage of a provider inside of two objects. */
const unfoldedDepthMax = 3;

export function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === '';
}

function objectOf(value: AttributeValue): Readonly<Record<string, AttributeValue>> | null {
  if (isObject(value)) return value;
  const parsed =
    typeof value === 'string' && value.startsWith('{') ? parsedAttribute(value) : undefined;
  return isObject(parsed) ? parsed : null;
}

/** The value of an attribute that contains JSON; undefined if it is not valid, or too large to be parsed. */
export function parsedAttribute(text: string): AttributeValue | undefined {
  try {
    return parseJson(text, attributeBounds) as AttributeValue;
  } catch {
    return undefined;
  }
}

const attributeBounds = { valuesMax: limits.otlpValuesMax, depthMax: limits.bodyDepthMax };
