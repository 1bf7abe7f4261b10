import { compile } from '../../core/compile.ts';
import { fieldNames, traceFields } from '../../core/trace-fields.ts';
import type { FieldName, TraceDraft } from '../../core/trace-fields.ts';
import { brokenRules, latestStart } from '../../core/trace-rules.ts';
import { limits } from '../../limits.ts';
import type { CallIds } from '../../store/trace-writer.ts';
import { namesByRow, rowIndex } from './attributes.ts';
import { addFacts, callTable, units } from './call-table.ts';
import type { Row, RowIndex } from './call-table.ts';
import { factsOf } from './call-facts.ts';
import { labelOf } from './call-label.ts';
import { idsOf } from './call-ids.ts';
import { agentOf, isModelCall } from './call-rules.ts';
import { includeParts } from './token-parts.ts';
import { RejectedSignal } from './signal.ts';
import type { Attributes, Signal } from './signal.ts';

/** A call as it is stored, and the ids by which it is recognized. */
export interface Call {
  draft: TraceDraft;
  ids: CallIds;
  /** The app that it ran in, as a number that is valid for this request. */
  app: number;
  startUs: number;
  endUs: number;
}

/** The call that a span or log record reports; null if it is not a model call. Throws `RejectedSignal` if it cannot be stored. */
export function callOf(signal: Signal, nowUs: number): Call | null {
  if (signal.rejectedBy !== null) throw new RejectedSignal(signal.rejectedBy);
  return isModelCall(signal) ? readCall(signal, nowUs) : null;
}

function readCall(signal: Signal, nowUs: number): Call {
  const { attributes, resource } = signal;
  stretchMoment(signal);
  const draft = draftOf(attributes, resource);
  // Types say that a model is always there.
  if ((draft.model as string | null) === null) {
    throw new RejectedSignal('it does not say which model was called');
  }
  const agent = agentOf(signal);
  draft.provider ??= agent?.provider ?? null;
  const separate = isAnthropicCount(attributes) ? 'cached' : (agent?.separate ?? null);
  includeParts(draft, numberIn(attributes, 'totalTokens'), separate);
  addFacts(draft, factsOf(signal, nowUs));
  const [broken] = brokenRules(draft, latestStart(nowUs));
  if (broken) throw new RejectedSignal(`${broken.name} ${broken.rule}`);
  const { app, startUs, endUs } = signal;
  return { draft, ids: idsOf(signal, draft), app, startUs, endUs };
}

/** Whether the input tokens are Anthropic's own count, which does not include cached ones. */
function isAnthropicCount(attributes: Attributes): boolean {
  const uncached = attributes.value(rowIndex.uncachedTokens);
  return uncached !== undefined && uncached === attributes.value(rowIndex.prompt_tokens);
}

/** Logfire reports the end of a stream as a span without a length, and how long the stream took as an attribute. */
function stretchMoment(signal: Signal): void {
  const { kind, startUs, endUs, attributes } = signal;
  if (kind !== 'span' || startUs !== endUs || startUs === 0) return;
  const seconds = numberIn(attributes, 'momentSeconds') ?? 0;
  if (seconds > 0) signal.startUs = Math.max(1, Math.round(endUs - seconds * 1_000_000));
}

// --- Fields ---

/** How attributes become the value of each kind of field. Labels may also come from the resource. */
const readers = { label, text, count, dollars };

const draftOf = compile<(attributes: Attributes, resource: Attributes) => TraceDraft>(
  `(attributes, resource) => ({ ${fieldNames.map((name) => `${name}: ${sourceOf(name)}`).join(', ')} })`,
  readers,
);

/** Input and output are added later: they may be spread over many attributes. */
function sourceOf(name: FieldName): string {
  if (!(name in callTable) || name === 'input' || name === 'output') return 'null';
  return `${traceFields[name].kind}(${rowIndex[name as Row]}, attributes, resource)`;
}

function text(row: RowIndex, attributes: Attributes): string | null {
  const value = attributes.value(row);
  if (value === undefined || value === null) return null;
  return (typeof value === 'string' ? value : JSON.stringify(value)).toWellFormed();
}

function label(row: RowIndex, attributes: Attributes, resource: Attributes): string | null {
  const value = attributes.value(row);
  if (value !== undefined) return labelOf(value, nameAt(row, attributes));
  const shared = resource.value(row);
  return shared === undefined ? null : labelOf(shared, nameAt(row, resource));
}

function count(row: RowIndex, attributes: Attributes): number | null {
  const value = numberAt(row, attributes);
  if (value === null) return null;
  const whole = durations.has(row) ? Math.round(value) : value;
  if (!Number.isInteger(whole) || whole < 0 || whole > limits.countMax) {
    throw new RejectedSignal(
      `${nameAt(row, attributes)} must be an integer from 0 to ${limits.countMax}`,
    );
  }
  return whole + 0;
}

/** Emitters measure them in fractions of a millisecond. */
const durations: ReadonlySet<RowIndex> = new Set(
  fieldNames.filter((name) => name.endsWith('_ms')).map((name) => rowIndex[name as Row]),
);

function dollars(row: RowIndex, attributes: Attributes): number | null {
  const value = numberAt(row, attributes);
  if (value === null) return null;
  if (!(value >= 0 && value <= limits.costUsdMax)) {
    throw new RejectedSignal(
      `${nameAt(row, attributes)} must be a number from 0 to ${limits.costUsdMax}`,
    );
  }
  return value + 0;
}

function numberIn(attributes: Attributes, row: Row): number | null {
  return numberAt(rowIndex[row], attributes);
}

/** Some emitters send numbers as text. */
function numberAt(row: RowIndex, attributes: Attributes): number | null {
  const value = attributes.value(row);
  if (value === undefined || value === null) return null;
  const number = typeof value === 'string' ? Number(value.trim() || Number.NaN) : value;
  if (typeof number !== 'number' || Number.isNaN(number)) {
    throw new RejectedSignal(`${nameAt(row, attributes)} must be a number`);
  }
  const unit = units[nameAt(row, attributes)];
  // Dividing by a power of ten is exact where multiplying by its inverse is not.
  return unit === undefined ? number : unit < 1 ? number / Math.round(1 / unit) : number * unit;
}

function nameAt(row: RowIndex, attributes: Attributes): string {
  return namesByRow[row]?.[attributes.rank(row)] ?? '';
}
