import { emitterChars } from './trace-writer.ts';
import type { CallIds } from './trace-writer.ts';

/**
 * What is remembered of a span: how it reported a call, if it did, and how calls directly inside of it were reported. As text it has five
 * characters for each way: what kind of report it was, and its emitter.
 */
export class SpanMark {
  /** Empty if the span is not known as a call. */
  #call: string;
  /** One for each kind of report. */
  #inside: string;

  constructor(text = '/') {
    const end = text.indexOf('/');
    this.#call = text.slice(0, Math.max(0, end));
    this.#inside = text.slice(end + 1);
  }

  get isCall(): boolean {
    return this.#call !== '';
  }

  /** Whether a call directly inside of the span is the one that the span reports. */
  get reportsInnerCall(): boolean {
    if (!this.isCall) return false;
    for (let at = 0; at < this.#inside.length; at += wayChars) {
      if (areSame(this.#call, this.#inside.slice(at, at + wayChars))) return true;
    }
    return false;
  }

  setCall(ids: CallIds): void {
    this.#call = wayOf(ids);
  }

  /** Returns false if nothing has changed. */
  addInside(ids: CallIds): boolean {
    const way = wayOf(ids);
    let at = 0;
    for (; at < this.#inside.length; at += wayChars) {
      if (this.#inside[at] === way[0]) break;
    }
    const found = this.#inside.slice(at, at + wayChars);
    if (found === way || found.endsWith(severalEmitters)) return false;
    const added = found === '' ? way : `${way.slice(0, 1)}${severalEmitters}`;
    this.#inside = this.#inside.slice(0, at) + added + this.#inside.slice(at + wayChars);
    return true;
  }

  toString(): string {
    return `${this.#call}/${this.#inside}`;
  }
}

const wayChars = 1 + emitterChars;
const severalEmitters = '*'.repeat(emitterChars);
const errorBit = 1;
const responseBit = 2;

/** The kind of the report and its emitter. */
function wayOf({ isError, response, emitter }: CallIds): string {
  return `${(isError ? errorBit : 0) | (response === null ? 0 : responseBit)}${emitter}`;
}

/**
 * A report and one directly inside of it are of the same call if they come from different emitters, agree about how it ended, and do not
 * both have a response id: with equal ones the call is recognized by them, and with different ones it is another.
 */
function areSame(outer: string, inner: string): boolean {
  const [outerKind, innerKind] = [Number(outer[0]), Number(inner[0])];
  return (
    ((outerKind ^ innerKind) & errorBit) === 0 &&
    (outerKind & innerKind & responseBit) === 0 &&
    outer.slice(1) !== inner.slice(1)
  );
}

/** The same rule for two reports. */
export function reportSameCall(outer: CallIds, inner: CallIds): boolean {
  return areSame(wayOf(outer), wayOf(inner));
}
