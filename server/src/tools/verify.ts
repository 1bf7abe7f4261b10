import { brokenRules, latestStart } from '../core/trace-rules.ts';
import { uuidMs } from '../core/uuid.ts';
import { limits } from '../limits.ts';
import type { AuditedTrace, Auditor, TeamContents } from '../store/audit.ts';
import { DamageList, FindingList } from './finding-list.ts';
import { LookupComparison } from './lookup-comparison.ts';
import { RollupRecount } from './rollup-recount.ts';

/** What is wrong in a team's data, as sentences. */
export interface TeamFindings {
  traces: number;
  /** In the sequence, the counter, and the ids: traces may be missing. */
  sequence: readonly string[];
  damaged: readonly string[];
  /** Values that no request could have stored. */
  invalid: readonly string[];
  /** In the marks, rollups and lookups, which can be rebuilt from the traces. */
  derived: readonly string[];
}

/** All of them in one list. */
export function allFindings({
  sequence,
  damaged,
  invalid,
  derived,
}: Omit<TeamFindings, 'traces'>): string[] {
  return [...sequence, ...damaged, ...invalid, ...derived];
}

type OnProgress = (traces: number) => void;

/** `examineTeam` with all findings in one list. */
export async function verifyTeam(store: Auditor, teamId: string, onProgress?: OnProgress) {
  const { traces, ...found } = await examineTeam(store, teamId, onProgress);
  return { traces, differences: allFindings(found) };
}

/**
 * Recomputes everything from the team's traces, compares it with the sequence, the counter, every rollup up to its mark and every
 * lookup, and checks every value and payload.
 */
export async function examineTeam(
  store: Auditor,
  teamId: string,
  onProgress: OnProgress = () => {},
): Promise<TeamFindings> {
  return store.audit(teamId, async (contents) => {
    const sequence = new SequenceCheck(contents);
    const damaged = new DamageList();
    const invalid = new FindingList('invalid values');
    const derived = new FindingList('differences of rollups and lookups');
    checkMarks(contents, derived);
    using recount = new RollupRecount(contents.marks);
    const { lookups, marks } = contents;
    const lookupComparison = lookups && new LookupComparison(lookups, marks.seq, derived);
    for await (const chunk of contents.traces) {
      for (const trace of chunk) {
        sequence.check(trace);
        damaged.check(trace);
        if (checkValues(trace, invalid)) recount.add(trace);
      }
      await lookupComparison?.compare(chunk);
      onProgress(sequence.traces);
    }
    sequence.end();
    await lookupComparison?.end();
    await recount.compare(contents.rollups, derived);
    return {
      traces: sequence.traces,
      sequence: sequence.findings.sentences(),
      damaged: damaged.sentences(),
      invalid: invalid.sentences(),
      derived: derived.sentences(),
    };
  });
}

/** The sequence has no gaps, and the counter fits its last trace. */
class SequenceCheck {
  readonly findings = new FindingList('differences of the sequence');
  traces = 0;
  readonly #contents: TeamContents;
  #expectedSeq: number;
  #lastUs = 0;

  constructor(contents: TeamContents) {
    this.#contents = contents;
    this.#expectedSeq = contents.firstSeq;
  }

  check({ seq, id, createdAtUs }: AuditedTrace): void {
    if (seq !== this.#expectedSeq) {
      this.findings.add(`sequence: expected trace ${this.#expectedSeq}, found ${seq}`);
    }
    if (uuidMs(id) !== Math.floor(createdAtUs / 1000)) {
      this.findings.add(`trace ${seq}: the time in its id ${id} does not match`);
    }
    this.#expectedSeq = seq + 1;
    this.#lastUs = createdAtUs;
    this.traces += 1;
  }

  /** After the last trace. */
  end(): void {
    const { lastSeq, lastUs } = this.#contents;
    const foundSeq = this.#expectedSeq - 1;
    if (foundSeq !== lastSeq) {
      this.findings.add(
        `counter: last sequence number is ${lastSeq}, but the last trace has ${foundSeq}`,
      );
    }
    if (this.traces > 0 && this.#lastUs !== lastUs) {
      this.findings.add(
        `counter: last time is ${lastUs}, but the time of the last trace is ${this.#lastUs}`,
      );
    }
  }
}

/** A trace obeys the same rules as a request. Returns whether it can be added up. */
function checkValues(trace: AuditedTrace, findings: FindingList): boolean {
  const { seq, id, createdAtUs } = trace;
  // The clock may have been set back a little between the check of the request and the commit.
  const broken = brokenRules(trace, latestStart(createdAtUs) + limits.clockAheadUsMax);
  if (broken.length === 0) {
    if (trace.hasWrongSums === true) {
      findings.add(
        `trace ${seq} (${id}): its cost and latency do not match the columns that are added up`,
      );
    }
    return true;
  }
  const list = broken.map(({ name, rule }) => `${name} ${rule}`);
  findings.add(`trace ${seq} (${id}): ${list.join('; ')}`);
  return !broken.some(({ isWrongNumber }) => isWrongNumber);
}

function checkMarks({ lastSeq, marks: { seq } }: TeamContents, findings: FindingList): void {
  if (seq <= lastSeq) return;
  findings.add(`marks: the roll mark is ${seq}, but the last sequence number is ${lastSeq}`);
}
