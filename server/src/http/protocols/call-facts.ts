import { dayOf, formatDay } from '../../core/clock.ts';
import { limits } from '../../limits.ts';
import { rowIndex } from './attributes.ts';
import type { SignalFacts } from './call-table.ts';
import { isErrorEvent } from './call-rules.ts';
import { inputOf, outputOf } from './call-text.ts';
import { RejectedSignal } from './signal.ts';
import type { Signal } from './signal.ts';

/** What a span or log record says apart from single attributes. */
export function factsOf(signal: Signal, nowUs: number): SignalFacts {
  const { kind, startUs, endUs, traceId } = signal;
  const isSpan = kind === 'span';
  checkTime(isSpan ? startUs : endUs, nowUs);
  const isTimed = isSpan && startUs !== 0 && endUs >= startUs;
  const isError = hasFailed(signal);
  const { message, type } = isError ? exceptionOf(signal) : noException;
  return {
    startedAtUs: isSpan && startUs !== 0 ? startUs : null,
    durationMs: isTimed ? durationMs(endUs - startUs) : null,
    endUs: isSpan || endUs === 0 ? null : endUs,
    traceId: traceId === '' ? null : traceId,
    status: isError ? 'error' : 'success',
    errorMessage: message,
    errorType: type,
    input: inputOf(signal)?.toWellFormed() ?? null,
    output: outputOf(signal)?.toWellFormed() ?? null,
  };
}

function durationMs(us: number): number {
  return Math.min(Math.round(us / 1000), limits.countMax);
}

/** As for `POST /traces`. A record without a time gets that of its arrival. */
function checkTime(us: number, nowUs: number): void {
  if (us === 0) return;
  if (us < limits.startedAtUsMin) throw new RejectedSignal(`its time is before ${earliestDay}`);
  if (us > nowUs + limits.startedAtAheadUsMax) {
    throw new RejectedSignal(`its time is more than ${hoursAheadMax} hours ahead of the server's`);
  }
}

const earliestDay = formatDay(dayOf(limits.startedAtUsMin));
const hoursAheadMax = limits.startedAtAheadUsMax / 3_600_000_000;

function hasFailed(signal: Signal): boolean {
  const { attributes } = signal;
  return (
    signal.isError ||
    isErrorEvent(signal) ||
    attributes.value(rowIndex.errorType) !== undefined ||
    failedLevels.has(attributes.value(rowIndex.level))
  );
}

const failedLevels = new Set<unknown>(['ERROR', 'failure']);
const noException = { message: null, type: null };

function exceptionOf({ statusMessage, events }: Signal) {
  const exception = events.find(({ name }) => name === 'exception')?.attributes ?? {};
  const message = statusMessage || exception['exception.message'];
  const type = exception['exception.type'];
  return {
    message: typeof message === 'string' && message !== '' ? message.toWellFormed() : null,
    type: typeof type === 'string' && isLabel(type) ? type : null,
  };
}

function isLabel(text: string): boolean {
  return text !== '' && text.length <= limits.labelCharsMax && !/\p{Cc}/u.test(text);
}
