import { draftTrace } from '../../src/core/trace.ts';
import type { TraceDraft } from '../../src/core/trace-fields.ts';
import { joinReports } from '../../src/http/protocols/same-calls.ts';
import type { ReportedCall } from '../../src/http/protocols/same-calls.ts';
import type { Call } from '../../src/http/protocols/call-draft.ts';
import type { CallIds } from '../../src/store/trace-writer.ts';
import { pick, shuffled } from '../support/seeded-random.ts';

/**
 * Random calls as several emitters report them: up to three levels of reports, with several attempts inside of an outer report, and some
 * reports that are sent again, are missing, or are forged.
 */
export interface CallHistory {
  reports: readonly Call[];
  /** The input tokens of each real call, 0 if it failed; null if the reports do not determine them. */
  tokens: readonly number[] | null;
  /** How many calls there are by the rule. */
  calls: number;
}

interface Emitter {
  name: string;
  knowsResponses: boolean;
}

interface Made {
  report: Call;
  /** The call that this report and its last attempt are of. */
  response: string | null;
}

export function randomCalls(random: () => number): CallHistory {
  const chance = (likelihood: number): boolean => random() < likelihood;
  const upTo = (max: number): number => 1 + Math.floor(random() * max);
  const emitters = emittersOf(random);
  const areRetriesValid = chance(0.3);
  const reports: Call[] = [];
  const tokens: number[] = [];
  let ids = 0;

  function reportOf(emitter: Emitter, outerSpan: string | null, last: Made | null): Made {
    const isError = last ? last.report.ids.isError : chance(0.3);
    const response = last ? last.response : isError ? null : `r:${++ids}`;
    const count = isError ? null : (last?.report.draft.prompt_tokens ?? 1000 + ++ids);
    if (!last) tokens.push(count ?? 0);
    const known = emitter.knowsResponses ? response : null;
    const report = callOf(
      { span: `s:${++ids}`, outerSpan, response: known, emitter: emitter.name, isError },
      count,
    );
    return { report, response };
  }

  /** Makes the reports inside of the span first, since the outer one repeats the last of them. */
  function make(level: number, outerSpan: string | null): Made {
    const emitter = emitters[level] as Emitter;
    const isInnermost = level + 1 === emitters.length;
    const span = `s:${++ids}`;
    let last: Made | null = null;
    for (let left = isInnermost ? 0 : upTo(2); left > 0; left--) {
      const made = make(level + 1, span);
      // Attempts before the last one have failed, unless the app did not like the answer.
      if (left > 1 && !areRetriesValid && !made.report.ids.isError) left = 1;
      last = made;
    }
    const made = reportOf(emitter, outerSpan, last);
    if (!isInnermost) made.report.ids.span = span;
    reports.push(made.report);
    return made;
  }

  const agent = chance(0.5) ? 's:agent' : null;
  for (let left = upTo(3); left > 0; left--) make(0, agent);
  const hasNested = chance(0.2);
  if (hasNested) nestInOneEmitter();
  const isComplete = !chance(0.3);
  const kept = isComplete ? reports : withoutSome(reports);
  if (!isComplete && chance(0.5)) kept.push(madeUp(kept));
  const isDetermined = isComplete && !areRetriesValid;
  return {
    reports: kept,
    tokens: isDetermined ? tokens.toSorted((a, b) => a - b) : null,
    calls: callsAmong(kept),
  };

  /** An emitter that reports a call inside of a call, which are two. */
  function nestInOneEmitter(): void {
    const innermost = emitters.at(-1) as Emitter;
    const outer = reportOf(innermost, null, null).report;
    reports.push(outer, reportOf(innermost, outer.ids.span, null).report);
  }

  /** Innermost reports may be missing, or outermost ones: what is between them connects them. */
  function withoutSome(all: readonly Call[]): Call[] {
    const isInnermostMissing = chance(0.5);
    const missing = isInnermostMissing ? emitters.at(-1) : emitters[0];
    return all.filter(({ ids: { emitter } }) => emitter !== missing?.name || chance(0.5));
  }

  /** At most on the third level: with a fourth, it can depend on chance which of several attempts is connected. */
  function madeUp(all: readonly Call[]): Call {
    const innermost = emitters[2]?.name;
    const around = all.filter(({ ids: { emitter } }) => emitter !== innermost);
    const outerSpan = around.length === 0 ? null : pick(random, around).ids.span;
    const isError = chance(0.5);
    return callOf({ span: `s:${++ids}`, outerSpan, response: null, emitter: 'evil', isError }, 1);
  }
}

/** One per level, the outermost first. An outer report may know the response only if everything between it and the provider does, or nothing. */
function emittersOf(random: () => number): Emitter[] {
  const count = 1 + Math.floor(random() * 3);
  const names = shuffled(random, ['aaaa', 'bbbb', 'cccc']);
  const emitters = names.slice(0, count).map((name) => ({ name, knowsResponses: random() < 0.5 }));
  const [outer, middle, inner] = emitters;
  if (middle && outer?.knowsResponses && inner?.knowsResponses) middle.knowsResponses = true;
  return emitters;
}

/** Without times, so that only ids and spans connect reports. */
function callOf(ids: CallIds, tokens: number | null): Call {
  const status = ids.isError ? 'error' : 'success';
  const draft = draftTrace({ model: 'm', prompt_tokens: tokens, status });
  return { draft, ids, app: 1, startUs: 0, endUs: 0 };
}

/** The rule in its simplest form: reports with an equal id are of one call, and each report is of the same call as one inside of it. */
function callsAmong(reports: readonly Call[]): number {
  const firstInside = new Map(
    reports.map((outer) => [outer, reports.find((inner) => isInside(outer, inner))]),
  );
  return grouped(reports, (one, other) => areEqual(one, other) || firstInside.get(one) === other)
    .length;
}

function grouped(
  reports: readonly Call[],
  areOfOne: (one: Call, other: Call) => boolean,
): Set<Call>[] {
  let groups = reports.map((report) => new Set([report]));
  for (const one of reports) {
    for (const other of reports) {
      if (one === other || !areOfOne(one, other)) continue;
      const both = groups.filter((group) => group.has(one) || group.has(other));
      groups = groups.filter((group) => !both.includes(group));
      groups.push(new Set(both.flatMap((group) => [...group])));
    }
  }
  return groups;
}

function areEqual(one: Call, other: Call): boolean {
  return haveEqual(one, other, 'span') || haveEqual(one, other, 'response');
}

function haveEqual(one: Call, other: Call, id: 'span' | 'response'): boolean {
  return one.ids[id] !== null && one.ids[id] === other.ids[id];
}

function isInside({ ids: outer }: Call, { ids: inner }: Call): boolean {
  return (
    inner.outerSpan === outer.span &&
    inner.emitter !== outer.emitter &&
    inner.isError === outer.isError &&
    (inner.response === null || outer.response === null)
  );
}

/** The reports in random order and in random requests, some of them twice. */
export function randomRequests(random: () => number, reports: readonly Call[]): Call[][] {
  const count = 1 + Math.floor(random() * (reports.length + 1));
  const requests: Call[][] = Array.from({ length: count }, () => []);
  for (const report of shuffled(random, reports)) {
    const at = Math.floor(random() * count);
    requests[at]?.push(report);
    if (random() < 0.2) requests[at + Math.floor(random() * (count - at))]?.push(report);
  }
  return requests;
}

/**
 * Until a report comes that connects two others, it is unknown that these are of one call. So this puts it into the same request as
 * one of them.
 */
export function withoutLateConnections(requests: readonly Call[][]): Call[][] {
  const kept: Call[][] = [];
  for (const request of requests) {
    while (connects(kept.flat(), request)) request.push(...(kept.pop() ?? []));
    kept.push(request);
  }
  return kept;
}

/** Whether new reports of one call are connected with earlier ones in two ways: around them, inside of them, or with an equal id. */
function connects(earlier: readonly Call[], request: readonly Call[]): boolean {
  const added = request.filter((report) => !earlier.includes(report));
  const isAround = (one: Call, other: Call): boolean => isInside(other, one);
  const areOfOne = (one: Call, other: Call): boolean =>
    isInside(one, other) || isAround(one, other) || areEqual(one, other);
  return grouped(added, areOfOne).some((group) => {
    const count = (way: typeof areOfOne): number =>
      [...group].filter((report) => earlier.some((other) => way(report, other))).length;
    // Each report has one around it at most, and several may have the same.
    return count(isInside) + Math.min(1, count(isAround)) + Math.min(1, count(areEqual)) > 1;
  });
}

/** Joins the reports of a request as the service does. Drafts are changed by it, so it works on copies. */
export function joined(request: readonly Call[]): ReportedCall[] {
  return joinReports(
    request.map((call) => ({ ...call, draft: { ...call.draft } })),
    Infinity,
  );
}

/** The input tokens of each call, ascending. */
export function tokensOf(drafts: readonly TraceDraft[]): number[] {
  return drafts.map((draft) => draft.prompt_tokens ?? 0).sort((a, b) => a - b);
}
