import { narrowNames, payloadNames, summedNames } from '../../core/trace-fields.ts';
import type { FieldName, PayloadName, TraceDraft } from '../../core/trace-fields.ts';
import { fail } from '../../errors.ts';
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
    return merged(reports.sort(innerFirst), textBytesMax);
  });
}

/** All reports of a call are stored with one row, so there must not be too many. */
const reportsPerCallMax = 100;

function joinTwo(sets: DisjointSets, one: number, other: number): void {
  if (sets.join(one, other) <= reportsPerCallMax) return;
  fail('body_too_large', {
    say: `One call is reported more than ${reportsPerCallMax} times in this request.`,
  });
}

/** Returns the first report of each span. */
function joinEqualIds(calls: readonly Call[], sets: DisjointSets): Map<string, number> {
  const spans = new Map<string, number>();
  const responses = new Map<string, number>();
  const joinFirst = (first: Map<string, number>, id: string | null, i: number): void => {
    if (id !== null) joinTwo(sets, first.getOrInsert(id, i), i);
  };
  for (const [i, { ids }] of calls.entries()) {
    joinFirst(spans, ids.span, i);
    joinFirst(responses, ids.response, i);
  }
  return spans;
}

/** A report is of the same call as at most one of those directly inside of it. */
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
  for (const [outer, inner] of best) joinTwo(sets, outer, inner);
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

/**
 * Joins reports of different emitters without a common id that agree in everything that is counted, and in the time. Each report is
 * compared with a limited number of earlier ones, so that the time this takes is in proportion to the number of reports.
 */
function joinAlike(calls: readonly Call[], sets: DisjointSets, emitterCount: number): void {
  const complete = Math.min(emitterCount, emittersPerCallMax);
  const known = new Map<number, KnownCall>();
  const knownOf = (i: number): KnownCall => known.getOrInsertComputed(sets.find(i), newKnown);
  for (const [i, { ids }] of calls.entries()) {
    const ofCall = knownOf(i);
    ofCall.emitters.add(ids.emitter);
    ofCall.hasResponse ||= ids.response !== null;
  }
  const byOutcome = new Map<string, OpenGroups>();
  const groupsFor = (call: Call): OpenGroups =>
    byOutcome.getOrInsertComputed(outcomeOf(call), () => new Map<string, OpenGroup>());
  const indexes = [...calls.keys()].filter((i) => calls[i]?.startUs !== 0);
  indexes.sort((a, b) => compareTimes(calls[a] as Call, calls[b] as Call));
  for (const [order, index] of indexes.entries()) {
    const call = calls[index] as Call;
    const own = knownOf(index);
    if (own.emitters.size >= complete) continue;
    const report: OpenReport = { index, order, call, known: own };
    const groups = groupsFor(call);
    const other = firstAlike(groups, report);
    own.reports.push(report);
    if (other === null) {
      addReport(groups, report);
      continue;
    }
    const joined = union(other.known, own);
    joinTwo(sets, other.index, index);
    known.set(sets.find(index), joined);
    if (joined.emitters.size >= complete) continue;
    for (const each of joined.reports) addReport(groupsFor(each.call), each);
  }
}

/** A call that so many emitters have reported is not compared with others. */
const emittersPerCallMax = 8;
/** Groups of one outcome that a report is compared with. */
const openGroupsMax = 32;
/** Reports of each group that a report is compared with. */
const comparedPerGroupMax = 32;

/** What is known of a call. An emitter reports it only once, and its response has one id. */
interface KnownCall {
  emitters: Set<string>;
  hasResponse: boolean;
  /** Those that were compared. */
  reports: OpenReport[];
  /** Whether it has become part of another `KnownCall`. */
  isReplaced: boolean;
}

function newKnown(): KnownCall {
  return { emitters: new Set(), hasResponse: false, reports: [], isReplaced: false };
}

function union(one: KnownCall, other: KnownCall): KnownCall {
  one.isReplaced = true;
  other.isReplaced = true;
  const known: KnownCall = {
    emitters: one.emitters.union(other.emitters),
    hasResponse: one.hasResponse || other.hasResponse,
    reports: [],
    isReplaced: false,
  };
  known.reports = [...one.reports, ...other.reports].map((report) => ({ ...report, known }));
  return known;
}

interface OpenReport {
  index: number;
  /** Its place in the order of times. */
  order: number;
  call: Call;
  known: KnownCall;
}

/** Reports of calls that have the same emitters: either each of them may be of the same call as a new report, or none. */
interface OpenGroup extends Pick<KnownCall, 'emitters' | 'hasResponse'> {
  /** The nearest in time are at the end. */
  reports: OpenReport[];
}

/** Those that were added to last are at the end. */
type OpenGroups = Map<string, OpenGroup>;

function addReport(groups: OpenGroups, report: OpenReport): void {
  const { emitters, hasResponse } = report.known;
  const key = [hasResponse, ...[...emitters].sort()].join(' ');
  const group = groups.get(key) ?? { emitters, hasResponse, reports: [] };
  group.reports.push(report);
  groups.delete(key);
  groups.set(key, group);
  if (groups.size <= openGroupsMax) return;
  const [oldest = ''] = groups.keys();
  groups.delete(oldest);
}

/** The earliest report that may be of the same call, among the nearest in time of each group. */
function firstAlike(groups: OpenGroups, report: OpenReport): OpenReport | null {
  const { emitters, hasResponse } = report.known;
  let first: OpenReport | null = null;
  for (const [key, group] of groups) {
    if (group.hasResponse && hasResponse) continue;
    if (!group.emitters.isDisjointFrom(emitters)) continue;
    const { reports } = group;
    let compared = 0;
    for (let at = reports.length - 1; at >= 0 && compared < comparedPerGroupMax; at--) {
      const other = reports[at] as OpenReport;
      if (other.known.isReplaced || other.call.endUs < report.call.startUs) {
        // It is over, or in another group by now. Few reports are behind it, so this is quick.
        reports.splice(at, 1);
        continue;
      }
      compared += 1;
      if (first !== null && first.order < other.order) continue;
      if (isMeanwhile(other.call, report.call)) first = other;
    }
    if (reports.length === 0) groups.delete(key);
  }
  return first;
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
  const a = `${one.span} ${one.response} ${one.emitter}`;
  const b = `${other.span} ${other.response} ${other.emitter}`;
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

function merged(reports: readonly Call[], textBytesMax: number): ReportedCall {
  const [first, ...others] = reports as [Call, ...Call[]];
  const { draft, ids, startUs, endUs } = first;
  // Nothing has to be measured.
  if (others.length === 0) return { draft, ids: [ids] };
  const textBytes = measure(draft);
  const all: Merged = { draft, textBytes, startUs, endUs, tokensUs: durationOf(first) };
  for (const other of others) merge(all, other, textBytesMax);
  return { draft: all.draft, ids: reports.map((report) => report.ids) };
}

/**
 * The report with the texts is the more complete one; if both have them, the outer one knows more of the app. What it lacks is taken from
 * the other. The tokens are those of the innermost report: some instrumentations add up streamed counts wrongly. If they disagree about
 * how the call ended, the innermost report stays as it is.
 */
function merge(all: Merged, call: Call, textBytesMax: number): void {
  if (all.draft.status !== call.draft.status) return;
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
