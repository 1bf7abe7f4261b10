import { narrowNames, payloadNames, summedNames } from '../../core/trace-fields.ts';
import type { FieldName, PayloadName, TraceDraft } from '../../core/trace-fields.ts';
import { reportSameCall } from '../../store/span-mark.ts';
import type { CallIds } from '../../store/trace-writer.ts';
import type { Call } from './call-draft.ts';
import { DisjointSets } from './disjoint-sets.ts';

/** A call with everything that was reported of it, in one request. */
export interface ReportedCall {
  draft: TraceDraft;
  ids: CallIds[];
}

/**
 * Joins the reports of the same call in one request: a call may be reported by an SDK, by the instrumentation around it and by a framework,
 * and the first of them often lacks the texts. The result does not depend on the order of the reports: docs/decisions/0021-reports-of-one-call.md.
 */
export function joinReports(calls: readonly Call[], textBytesMax: number): ReportedCall[] {
  const sets = new DisjointSets(calls.length);
  const spans = joinEqualIds(calls, sets);
  const emitters = new Set(calls.map(({ ids }) => ids.emitter));
  // Most requests are of one emitter, so nothing but ids has to be compared.
  if (emitters.size > 1) {
    joinNested(calls, sets, spans);
    joinAlike(calls, sets, emitters.size);
  }
  return sets.groups().map((indexes) => {
    const reports = indexes.map((i) => calls[i] as Call);
    return reports.length === 1
      ? alone(reports[0] as Call)
      : merged(reports.sort(innerFirst), textBytesMax);
  });
}

/** Returns the first report of each span. */
function joinEqualIds(calls: readonly Call[], sets: DisjointSets): Map<string, number> {
  const spans = new Map<string, number>();
  const responses = new Map<string, number>();
  const join = (first: Map<string, number>, id: string | null, i: number): void => {
    if (id !== null) sets.join(first.getOrInsert(id, i), i);
  };
  for (const [i, { ids }] of calls.entries()) {
    join(spans, ids.span, i);
    join(responses, ids.response, i);
  }
  return spans;
}

/** Each report is of the same call as at most one of those directly inside of it. */
function joinNested(
  calls: readonly Call[],
  sets: DisjointSets,
  spans: ReadonlyMap<string, number>,
): void {
  const best = new Map<number, number>();
  for (const [i, inner] of calls.entries()) {
    const { outerSpan } = inner.ids;
    const at = outerSpan === null ? undefined : spans.get(outerSpan);
    if (at === undefined) continue;
    const outer = calls[at] as Call;
    if (!reportSameCall(outer.ids, inner.ids)) continue;
    const other = best.get(at);
    if (other === undefined || isLikelier(outer, inner, calls[other] as Call)) best.set(at, i);
  }
  for (const [outer, inner] of best) sets.join(outer, inner);
}

/** Of several attempts, the outer report has the counts of one, most often of the last. */
function isLikelier(outer: Call, one: Call, other: Call): boolean {
  const isOne = haveSameTokens(outer.draft, one.draft);
  if (isOne !== haveSameTokens(outer.draft, other.draft)) return isOne;
  return (one.endUs - other.endUs || compareIds(one, other)) > 0;
}

function haveSameTokens(one: TraceDraft, other: TraceDraft): boolean {
  return (
    one.prompt_tokens === other.prompt_tokens && one.completion_tokens === other.completion_tokens
  );
}

/** Reports of different emitters without a common id that agree in everything that is counted, and in the time. */
function joinAlike(calls: readonly Call[], sets: DisjointSets, emitters: number): void {
  const known = new Map<number, KnownOfCall>();
  for (const [i, { ids }] of calls.entries()) {
    const ofCall = known.getOrInsertComputed(sets.find(i), newKnown);
    ofCall.emitters.add(ids.emitter);
    if (ids.response !== null) ofCall.responses.add(ids.response);
  }
  const knownOf = (i: number): KnownOfCall => known.getOrInsertComputed(sets.find(i), newKnown);
  const byOutcome = new Map<string, Map<string, number[]>>();
  const indexes = [...calls.keys()].filter((i) => calls[i]?.startUs !== 0);
  indexes.sort((a, b) => compareTimes(calls[a] as Call, calls[b] as Call));
  for (const [order, i] of indexes.entries()) {
    const call = calls[i] as Call;
    const ofCall = knownOf(i);
    if (ofCall.emitters.size === emitters) continue;
    const open = byOutcome.getOrInsertComputed(outcomeOf(call), () => new Map<string, number[]>());
    /** The place of the first report in `indexes` that may be of the same call. */
    let found = Infinity;
    const own = listOf(call, ofCall);
    for (const [list, orders] of open) {
      if (!mayMatch(list, own)) continue;
      // Reports whose calls have ended or are complete are never looked at again.
      const left = orders.filter((k) => {
        const other = indexes[k] as number;
        return (
          (calls[other] as Call).endUs >= call.startUs && knownOf(other).emitters.size < emitters
        );
      });
      open.set(list, left);
      const first = left.find((k) => {
        const other = indexes[k] as number;
        return mayBeSame(knownOf(other), ofCall) && isMeanwhile(calls[other] as Call, call);
      });
      found = Math.min(found, first ?? Infinity);
    }
    open.getOrInsertComputed(own, () => []).push(order);
    if (found === Infinity) continue;
    const other = indexes[found] as number;
    const joined = union(knownOf(other), ofCall);
    sets.join(other, i);
    known.set(sets.find(i), joined);
  }
}

/** Reports are compared with those in other lists only, so that thousands of one kind are not compared with each other. */
function listOf({ ids: { emitter } }: Call, { responses }: KnownOfCall): string {
  return `${responses.size > 0 ? hasResponse : ' '}${emitter}`;
}

function mayMatch(one: string, other: string): boolean {
  const haveResponses = one.startsWith(hasResponse) && other.startsWith(hasResponse);
  return !haveResponses && one.slice(1) !== other.slice(1);
}

const hasResponse = 'r';

interface KnownOfCall {
  emitters: Set<string>;
  responses: Set<string>;
}

function newKnown(): KnownOfCall {
  return { emitters: new Set(), responses: new Set() };
}

/** An emitter reports a call only once, and a response has one id. */
function mayBeSame(one: KnownOfCall, other: KnownOfCall): boolean {
  return (
    one.emitters.isDisjointFrom(other.emitters) &&
    (one.responses.size === 0 || other.responses.size === 0)
  );
}

function union(one: KnownOfCall, other: KnownOfCall): KnownOfCall {
  return {
    emitters: one.emitters.union(other.emitters),
    responses: one.responses.union(other.responses),
  };
}

/** Two reports without a common id are of the same call only if all of this is equal. */
function outcomeOf({ draft: { model, status, prompt_tokens, completion_tokens }, app }: Call) {
  return `${app} ${status} ${prompt_tokens} ${completion_tokens} ${model}`;
}

/** Their times overlap. Without tokens to compare, one of them must be within the other. */
function isMeanwhile(one: Call, other: Call): boolean {
  const start = Math.max(one.startUs, other.startUs);
  const end = Math.min(one.endUs, other.endUs);
  if (hasTokens(other.draft)) return start <= end;
  const shorter = Math.min(one.endUs - one.startUs, other.endUs - other.startUs);
  return end - start === shorter;
}

function compareTimes(one: Call, other: Call): number {
  return one.startUs - other.startUs || one.endUs - other.endUs || compareIds(one, other);
}

function innerFirst(one: Call, other: Call): number {
  return durationOf(one) - durationOf(other) || compareTimes(one, other);
}

function durationOf({ startUs, endUs }: Call): number {
  return endUs - startUs;
}

function compareIds({ ids: one }: Call, { ids: other }: Call): number {
  const [a, b] = [`${one.span} ${one.response}`, `${other.span} ${other.response}`];
  return a < b ? -1 : a > b ? 1 : 0;
}

// --- What is stored of several reports ---

interface Merged {
  draft: TraceDraft;
  textBytes: TextBytes;
  startUs: number;
  endUs: number;
  /** How long the report took that the tokens are from. */
  tokensUs: number;
}

/** How long each text of a draft is, so that a long one is not measured again with each report. */
type TextBytes = Record<PayloadName, number>;

function alone({ draft, ids }: Call): ReportedCall {
  return { draft, ids: [ids] };
}

function merged(reports: readonly Call[], textBytesMax: number): ReportedCall {
  const [first, ...others] = reports as [Call, ...Call[]];
  const { draft, startUs, endUs } = first;
  const textBytes = measure(draft);
  const all: Merged = { draft, textBytes, startUs, endUs, tokensUs: durationOf(first) };
  for (const other of others) merge(all, other, textBytesMax);
  return { draft: all.draft, ids: reports.map(({ ids }) => ids) };
}

function endsAlike(one: TraceDraft, other: TraceDraft): boolean {
  return one.status === other.status;
}

/**
 * The report with the texts is the more complete one; if both have them, the outer one knows more of the app. What it lacks is taken from
 * the other. The tokens are those of the innermost report: some instrumentations add up streamed counts wrongly. If they disagree about
 * how the call ended, the innermost report stays as it is.
 */
function merge(all: Merged, call: Call, textBytesMax: number): void {
  if (!endsAlike(all.draft, call.draft)) return;
  const tokensUs = durationOf(call);
  const isInner = tokensUs < all.tokensUs && hasTokens(call.draft);
  const hasBetterTokens = isInner || !hasTokens(all.draft);
  const counts = countsOf(hasBetterTokens ? call.draft : all.draft);
  if (hasBetterTokens) all.tokensUs = tokensUs;
  const isWider = tokensUs > all.endUs - all.startUs;
  const texts = textsIn(call.draft) - textsIn(all.draft);
  const isBetter = texts > 0 || (texts === 0 && isWider);
  const added = { draft: call.draft, textBytes: measure(call.draft) };
  const [base, other] = isBetter ? [added, all] : [all, added];
  fillFrom(base, other, textBytesMax);
  all.draft = Object.assign(base.draft, counts);
  all.textBytes = base.textBytes;
  all.startUs = Math.min(all.startUs, call.startUs);
  all.endUs = Math.max(all.endUs, call.endUs);
}

function hasTokens({ prompt_tokens: input, completion_tokens: output }: TraceDraft): boolean {
  return input !== null || output !== null;
}

function countsOf(draft: TraceDraft): Partial<TraceDraft> {
  return Object.fromEntries(summedNames.map((name) => [name, draft[name]]));
}

function textsIn({ input, output }: TraceDraft): number {
  return (input === null ? 0 : 1) + (output === null ? 0 : 1);
}

function measure(draft: TraceDraft): TextBytes {
  const lengths = payloadNames.map((name) => [name, Buffer.byteLength(draft[name] ?? '')]);
  return Object.fromEntries(lengths) as TextBytes;
}

type Measured = Pick<Merged, 'draft' | 'textBytes'>;

/** A text that would make the trace too long is left out. */
function fillFrom(base: Measured, other: Measured, textBytesMax: number): void {
  const values: Partial<Record<FieldName, unknown>> = base.draft;
  for (const name of narrowNames) values[name] ??= other.draft[name];
  let bytes = 0;
  for (const name of payloadNames) bytes += base.textBytes[name];
  for (const name of payloadNames) {
    const added = other.textBytes[name];
    if (base.draft[name] !== null || bytes + added > textBytesMax) continue;
    base.draft[name] = other.draft[name];
    base.textBytes[name] = added;
    bytes += added;
  }
}
