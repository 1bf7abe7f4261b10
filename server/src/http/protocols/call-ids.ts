import { hash } from 'node:crypto';
import type { TraceDraft } from '../../core/trace-fields.ts';
import { limits } from '../../limits.ts';
import type { CallIds } from '../../store/trace-writer.ts';
import { rowIndex } from './attributes.ts';
import { eventNameOf, isEventOfOwnSpan } from './call-rules.ts';
import type { Signal } from './signal.ts';

/** How a call is recognized if it is reported again: by a retry, by a second instrumentation, or as a span and as a log record. */
export function idsOf(signal: Signal, draft: TraceDraft): CallIds {
  const response = responseIdOf(signal);
  if (signal.kind === 'span' || isEventOfOwnSpan(signal)) {
    return {
      span: spanIdOf(signal, signal.spanId),
      outerSpan: spanIdOf(signal, signal.parentSpanId),
      response,
    };
  }
  return { span: response === null ? logIdOf(signal, draft) : null, outerSpan: null, response };
}

/** The beginning of the trace id makes it unlikely enough that two spans of a day share an id. */
function spanIdOf({ traceId }: Signal, spanId: string): string | null {
  return spanId === '' ? null : `s:${spanId}${traceId.slice(0, 8)}`;
}

/** A log record has no id. A retry of its export repeats everything in it. */
function logIdOf(signal: Signal, draft: TraceDraft): string {
  const { attributes, endUs, traceId, spanId } = signal;
  const sequence = attributes.value(rowIndex.eventSequence) ?? null;
  const parts = [eventNameOf(signal), endUs, traceId, spanId, sequence, draft];
  return `s:${hash('sha256', JSON.stringify(parts), 'base64url')}`;
}

const plainId = /^[\x21-\x7e]{1,64}$/;

function responseIdOf({ attributes }: Signal): string | null {
  const id = attributes.value(rowIndex.responseId);
  if (typeof id !== 'string' || id.length < limits.responseIdCharsMin) return null;
  return `r:${plainId.test(id) ? id : hash('sha256', id, 'base64url')}`;
}
