import { emitterChars } from './trace-writer.ts';
import type { CallIds } from './trace-writer.ts';

/**
 * What is remembered of a span: who reported it as a call, and who reported calls in its children. A reporter is an emitter and what is
 * known of its report: whether the call failed, and whether there was a response id.
 *
 * As text, a reporter has five characters: a digit and the emitter. The mark is the reporter of the span, a slash and the reporters of its
 * children.
 */
export class SpanMark {
  /** Empty if the span is not known as a call. */
  #reporter: string;
  /** The reporters of the children one after the other, at most one with each digit. */
  #children: string;

  constructor(text = '/') {
    const end = text.indexOf('/');
    this.#reporter = text.slice(0, Math.max(0, end));
    this.#children = text.slice(end + 1);
  }

  get isCall(): boolean {
    return this.#reporter !== '';
  }

  /** Whether the span reports the same call as one of its children. */
  get reportsCallOfChild(): boolean {
    if (!this.isCall) return false;
    for (let at = 0; at < this.#children.length; at += reporterChars) {
      const child = this.#children.slice(at, at + reporterChars);
      if (mayReportSameCall(this.#reporter, child)) return true;
    }
    return false;
  }

  setCall(ids: CallIds): void {
    this.#reporter = reporterOf(ids);
  }

  /** Returns false if nothing has changed. */
  addChild(ids: CallIds): boolean {
    const child = reporterOf(ids);
    let at = 0;
    for (; at < this.#children.length; at += reporterChars) {
      if (this.#children[at] === child[0]) break;
    }
    const known = this.#children.slice(at, at + reporterChars);
    if (known === child || known.endsWith(severalEmitters)) return false;
    const added = known === '' ? child : `${child.slice(0, 1)}${severalEmitters}`;
    this.#children = this.#children.slice(0, at) + added + this.#children.slice(at + reporterChars);
    return true;
  }

  toString(): string {
    return `${this.#reporter}/${this.#children}`;
  }
}

const reporterChars = 1 + emitterChars;
/** In place of the emitter, if children with the same digit have different ones. One of them is not that of the span. */
const severalEmitters = '*'.repeat(emitterChars);
const errorBit = 1;
const responseBit = 2;

function reporterOf({ isError, response, emitter }: CallIds): string {
  return `${(isError ? errorBit : 0) | (response === null ? 0 : responseBit)}${emitter}`;
}

/**
 * A span and its child report the same call if they come from different emitters, agree whether it failed, and do not both have a response
 * id: with equal ones the call is recognized by them, and with different ones it is another.
 */
function mayReportSameCall(parent: string, child: string): boolean {
  const [parentBits, childBits] = [Number(parent[0]), Number(child[0])];
  return (
    ((parentBits ^ childBits) & errorBit) === 0 &&
    (parentBits & childBits & responseBit) === 0 &&
    parent.slice(1) !== child.slice(1)
  );
}

/** The same rule for two reports. */
export function reportSameCall(parent: CallIds, child: CallIds): boolean {
  return mayReportSameCall(reporterOf(parent), reporterOf(child));
}
