import type { AuditedTrace, StoredLookup } from '../store/audit.ts';
import { eachLookup } from '../store/trace-lookups.ts';
import type { FindingList } from './finding-list.ts';

/** Compares the lookups of a team with its traces. Both are read once and in the order of their sequence numbers. */
export class LookupComparison {
  readonly #stored: AsyncIterator<readonly StoredLookup[]>;
  readonly #rolledSeq: number;
  readonly #findings: FindingList;
  /** Lookups that were read and not compared yet. */
  #next: readonly StoredLookup[] = [];
  #at = 0;

  /** Traces up to `rolledSeq` have lookups. */
  constructor(
    stored: AsyncIterable<readonly StoredLookup[]>,
    rolledSeq: number,
    findings: FindingList,
  ) {
    this.#stored = stored[Symbol.asyncIterator]();
    this.#rolledSeq = rolledSeq;
    this.#findings = findings;
  }

  async compare(traces: readonly AuditedTrace[]): Promise<void> {
    const stored = await this.#takeUpTo(traces.at(-1)?.seq ?? 0);
    for (const trace of traces) {
      const hashes = stored.get(trace.seq) ?? [];
      stored.delete(trace.seq);
      let missing = 0;
      // A generation that is being built may be ahead of the active one, so there may be lookups of later traces.
      eachLookup(trace, (hash) => {
        const at = hashes.indexOf(hash);
        if (at >= 0) hashes.splice(at, 1);
        else if (trace.seq <= this.#rolledSeq) missing += 1;
      });
      if (missing > 0) this.#findings.add(`trace ${trace.seq}: missing lookups: ${missing}`);
      if (hashes.length > 0) this.#addWrong(trace.seq, hashes.length);
    }
    for (const [seq, hashes] of stored) this.#addWrong(seq, hashes.length);
  }

  /** After the last trace: lookups that are left belong to no trace. */
  async end(): Promise<void> {
    for (const [seq, hashes] of await this.#takeUpTo(Infinity)) this.#addWrong(seq, hashes.length);
  }

  #addWrong(seq: number, count: number): void {
    this.#findings.add(`trace ${seq}: wrong lookups: ${count}`);
  }

  async #takeUpTo(seq: number): Promise<Map<number, number[]>> {
    const taken = new Map<number, number[]>();
    for (;;) {
      const lookup = this.#next[this.#at];
      if (lookup === undefined) {
        const { done, value } = await this.#stored.next();
        if (done) return taken;
        [this.#next, this.#at] = [value, 0];
        continue;
      }
      if (lookup.seq > seq) return taken;
      taken.getOrInsert(lookup.seq, []).push(lookup.hash);
      this.#at += 1;
    }
  }
}
