import { hash } from 'node:crypto';
import type { TraceDraft } from '../../core/trace-fields.ts';
import { limits } from '../../limits.ts';
import { emitterChars } from '../../store/trace-writer.ts';
import type { CallIds } from '../../store/trace-writer.ts';
import { nameCharsMax, rowIndex } from './attributes.ts';
import type { Row } from './call-table.ts';
import { eventNameOf, isClaudeCode, isEventOfOwnSpan, litellmScope } from './call-rules.ts';
import type { Signal } from './signal.ts';

/** How a call is recognized if it is reported again: by a retry, by a second instrumentation, or as a span and as a log record. */
export function idsOf(signal: Signal, draft: TraceDraft): CallIds {
  const response = responseIdOf(signal);
  const isOfSpan = signal.kind === 'span' || isEventOfOwnSpan(signal);
  const span = isOfSpan ? spanIdOf(signal, signal.spanId) : null;
  return {
    span: span ?? (response === null ? contentIdOf(signal, draft) : null),
    outerSpan: isOfSpan ? spanIdOf(signal, signal.parentSpanId) : null,
    response,
    emitter: emitterOf(signal.scope),
    isError: draft.status === 'error',
  };
}

const emitters = new Map<string, string>();
const emittersMax = 1000;

/** Enough of a hash to tell apart the few emitters of a team. */
function emitterOf(scope: string): string {
  const known = emitters.get(scope);
  if (known !== undefined) return known;
  const emitter = hash('sha256', scope, 'base64url').slice(0, emitterChars);
  if (emitters.size < emittersMax && scope.length <= nameCharsMax) emitters.set(scope, emitter);
  return emitter;
}

/** Span ids are random only within a trace. */
function spanIdOf({ traceId }: Signal, spanId: string): string | null {
  return spanId === '' ? null : `s:${traceId}.${spanId}`;
}

/** For a signal without an id, such as most log records. A retry of its export repeats everything in it. */
function contentIdOf(signal: Signal, draft: TraceDraft): string {
  const { attributes, endUs, traceId, spanId } = signal;
  const sequence = attributes.value(rowIndex.eventSequence) ?? null;
  const parts = [eventNameOf(signal), endUs, traceId, spanId, sequence, draft];
  const proxyId = attributes.value(rowIndex.litellmId);
  if (proxyId !== undefined) parts.push(proxyId);
  return `s:${hash('sha256', JSON.stringify(parts), 'base64url')}`;
}

const plainId = /^[\x21-\x7e]{1,64}$/;

function responseIdOf(signal: Signal): string | null {
  const id = signal.attributes.value(rowIndex[responseRowOf(signal)]);
  if (typeof id !== 'string' || id.length < limits.responseIdCharsMin) return null;
  return `r:${plainId.test(id) ? id : hash('sha256', id, 'base64url')}`;
}

/**
 * Where the id of the response is. LiteLLM's own id is that of the response only if the call is a completion that succeeded. Otherwise it
 * is the proxy's id of the request, which all attempts share, and which callers can choose.
 */
function responseRowOf(signal: Signal): Row {
  if (isClaudeCode(signal)) return 'requestId';
  const { scope, attributes } = signal;
  if (scope !== litellmScope || attributes.value(rowIndex.level) === 'failure') return 'responseId';
  const type = attributes.value(rowIndex.litellmCallType);
  return typeof type === 'string' && completionType.test(type) ? 'litellmId' : 'responseId';
}

/** `acompletion`, `atext_completion`, `aresponses`, `anthropic_messages`, `agenerate_content_stream`, … */
const completionType = /completion|responses|messages|generate_content/;
