import { fieldNames, summedNames } from '../../core/trace-fields.ts';
import type { FieldName, TraceDraft } from '../../core/trace-fields.ts';
import type { CallIds } from '../../store/trace-writer.ts';
import type { Call } from './call-draft.ts';

/** A call with everything that was reported of it, in one request. */
export interface ReportedCall {
  draft: TraceDraft;
  ids: CallIds[];
}

interface Group extends ReportedCall {
  /** The emitters that reported it. */
  sources: Set<string>;
  startUs: number;
  endUs: number;
  /** How long the report took that the tokens are from. */
  tokensUs: number;
}

/**
 * Joins the reports of the same call in one request: a call may be reported by an SDK, by the instrumentation around it and by a framework,
 * and the first of them often lacks the texts. An emitter reports a call only once, so two reports of one emitter are two calls, such as a
 * failed attempt and its retry, unless their ids are the same.
 */
export function joinReports(calls: readonly Call[]): ReportedCall[] {
  const groups: Group[] = [];
  const byResponse = new Map<string, Group>();
  const bySpan = new Map<string, Group>();
  const byOuterSpan = new Map<string, Group[]>();
  const byOutcome = new Map<string, Group[]>();
  // Most requests are of one emitter, so nothing but ids has to be compared.
  const areOfSeveral = calls.some(({ source }) => source !== calls[0]?.source);

  function groupOf(call: Call): Group | undefined {
    const { span, outerSpan, response } = call.ids;
    const same =
      (response === null ? undefined : byResponse.get(response)) ??
      (span === null ? undefined : bySpan.get(span));
    if (same || !areOfSeveral) return same;
    const isOther = (group: Group | undefined): group is Group =>
      group !== undefined && !group.sources.has(call.source);
    const outer = outerSpan === null ? undefined : bySpan.get(outerSpan);
    if (isOther(outer)) return outer;
    const inner = span === null ? [] : (byOuterSpan.get(span) ?? []).filter(isOther);
    // Of several attempts inside of a call, it reports the one that ended like it.
    if (inner.length > 0)
      return inner.find(({ draft }) => endsAlike(draft, call.draft)) ?? inner[0];
    return byOutcome
      .get(outcomeOf(call))
      ?.find((group) => isOther(group) && isMeanwhile(group, call));
  }

  for (const call of calls) {
    const found = groupOf(call);
    const group: Group = found ?? {
      ...call,
      ids: [],
      sources: new Set(),
      tokensUs: call.endUs - call.startUs,
    };
    if (found) merge(found, call);
    else groups.push(group);
    group.ids.push(call.ids);
    group.sources.add(call.source);
    const { span, outerSpan, response } = call.ids;
    if (response !== null) byResponse.set(response, group);
    if (span !== null) bySpan.set(span, group);
    if (!areOfSeveral) continue;
    if (outerSpan !== null) byOuterSpan.getOrInsertComputed(outerSpan, () => []).push(group);
    if (!found) byOutcome.getOrInsertComputed(outcomeOf(call), () => []).push(group);
  }
  return groups;
}

/** Two reports without a common id are of the same call only if all of this is equal. */
function outcomeOf({ draft: { model, status, prompt_tokens, completion_tokens }, app }: Call) {
  return `${app} ${status} ${prompt_tokens} ${completion_tokens} ${model}`;
}

/** Their times overlap. Without tokens to compare, one of them must be within the other. */
function isMeanwhile(one: Group, other: Call): boolean {
  if (one.startUs === 0 || other.startUs === 0) return false;
  const start = Math.max(one.startUs, other.startUs);
  const end = Math.min(one.endUs, other.endUs);
  if (hasTokens(other.draft)) return start <= end;
  const shorter = Math.min(one.endUs - one.startUs, other.endUs - other.startUs);
  return end - start === shorter;
}

function endsAlike(one: TraceDraft, other: TraceDraft): boolean {
  return one.status === other.status;
}

/**
 * The report with the texts is the more complete one; if both have them, the outer one knows more of the app. What it lacks is taken from
 * the other. The tokens are those of the innermost report: some instrumentations add up streamed counts wrongly. If they disagree about
 * how the call ended, the first report stays as it is.
 */
function merge(group: Group, call: Call): void {
  if (!endsAlike(group.draft, call.draft)) return;
  const tokensUs = call.endUs - call.startUs;
  const isInner = tokensUs < group.tokensUs && hasTokens(call.draft);
  const hasBetterTokens = isInner || !hasTokens(group.draft);
  const counts = countsOf(hasBetterTokens ? call.draft : group.draft);
  if (hasBetterTokens) group.tokensUs = tokensUs;
  const isWider = tokensUs > group.endUs - group.startUs;
  const texts = textsIn(call.draft) - textsIn(group.draft);
  const isBetter = texts > 0 || (texts === 0 && isWider);
  const [base, other] = isBetter ? [call.draft, group.draft] : [group.draft, call.draft];
  fillFrom(base, other);
  group.draft = Object.assign(base, counts);
  group.startUs = Math.min(group.startUs, call.startUs);
  group.endUs = Math.max(group.endUs, call.endUs);
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

function fillFrom(base: TraceDraft, other: TraceDraft): void {
  const values: Partial<Record<FieldName, unknown>> = base;
  for (const name of fieldNames) values[name] ??= other[name];
}
