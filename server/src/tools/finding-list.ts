import { limits } from '../limits.ts';
import type { AuditedTrace } from '../store/audit.ts';

/** Collects sentences about one kind of finding: lists the first ones and counts the others, since there may be millions. */
export class FindingList {
  /** What is counted, such as `damaged traces`. */
  readonly #what: string;
  readonly #listed: string[] = [];
  #unlisted = 0;

  constructor(what: string) {
    this.#what = what;
  }

  add(sentence: string): void {
    if (this.#listed.length < limits.findingsListMax) this.#listed.push(sentence);
    else this.#unlisted += 1;
  }

  sentences(): string[] {
    if (this.#unlisted === 0) return this.#listed;
    return [...this.#listed, `${this.#unlisted} more ${this.#what}`];
  }
}

export class DamageList extends FindingList {
  constructor() {
    super('damaged traces');
  }

  /** Adds a trace if it is damaged. */
  check({ seq, id, damaged }: Pick<AuditedTrace, 'seq' | 'id' | 'damaged'>): void {
    if (damaged.length > 0) this.add(`trace ${seq} (${id}): damaged ${damaged.join(', ')}`);
  }
}
