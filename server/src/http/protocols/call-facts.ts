import { isStart, latestStart, startRule } from '../../core/trace-rules.ts';
import { limits } from '../../limits.ts';
import { rowIndex } from './attributes.ts';
import type { SignalFacts } from './call-table.ts';
import { labelOf } from './call-label.ts';
import { isErrorEvent, litellmScope } from './call-rules.ts';
import { inputOf, outputOf } from './call-text.ts';
import { RejectedSignal } from './signal.ts';
import type { Signal } from './signal.ts';

/** What a span or log record says apart from single attributes. */
export function factsOf(signal: Signal, nowUs: number): SignalFacts {
  const { kind, startUs, endUs, traceId } = signal;
  const isSpan = kind === 'span';
  checkTime(signal, nowUs);
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
  const ms = Math.round(us / 1000);
  if (ms > limits.countMax) throw new RejectedSignal(`it took longer than ${limits.countMax} ms`);
  return ms;
}

/** As for `POST /traces`. A signal without a time gets that of its arrival. */
function checkTime({ kind, scope, startUs, endUs }: Signal, nowUs: number): void {
  const us = kind === 'span' ? startUs : endUs;
  if (us === 0 || isStart(us, latestStart(nowUs))) return;
  const ofOtlp = kind === 'span' ? 'startTimeUnixNano' : 'timeUnixNano';
  throw new RejectedSignal(`${scope === litellmScope ? 'startTime' : ofOtlp} ${startRule}`);
}

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
    type: type === undefined ? null : labelOf(type, ''),
  };
}
