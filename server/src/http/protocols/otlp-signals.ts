import { fail } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { RejectedSignal } from './signal.ts';
import type { Attributes, Signal } from './signal.ts';

/** The spans or log records of a request. Each is valid until the next one is read. */
export interface Signals extends Iterable<Signal> {
  count: number;
}

export function openSignal(
  kind: Signal['kind'],
  attributes: Attributes,
  resource: Attributes,
): Signal {
  return {
    kind,
    name: '',
    scope: '',
    traceId: '',
    spanId: '',
    parentSpanId: '',
    startUs: 0,
    endUs: 0,
    isError: false,
    statusMessage: '',
    attributes,
    resource,
    app: 0,
    events: [],
    rejectedBy: null,
  };
}

/** Events that describe the call: its messages, or why it failed. Emitters add others, for example one per streamed token. */
export function isEventOfInterest(name: string): boolean {
  return name === 'exception' || (name.startsWith('gen_ai.') && name !== 'gen_ai.content.chunk');
}

/** OTLP has ids of 16 and 8 bytes, and some emitters others. What is far too long, or only zeros, is no id. */
export function idOrNone(hex: string): string {
  return hex.length > idCharsMax || /^0*$/.test(hex) ? '' : hex;
}

/** In hexadecimal digits. */
export const idCharsMax = 64;

/** Microseconds are 0 if no time was sent, so a few nanoseconds after 1970 must not become 0. */
export function atLeastOne(sent: number, us: number): number {
  return sent === 0 ? 0 : Math.max(1, us);
}

export function tooManySignals(): never {
  return fail('body_too_large', {
    say: `The request has more than ${limits.otlpSignalsMax} spans or log records. Send smaller batches.`,
  });
}

export function tooManyAttributes(): never {
  throw new RejectedSignal(`it has more than ${limits.otlpAttributesMax} attributes`);
}

export function tooManyValues(): never {
  throw new RejectedSignal(`an attribute has more than ${limits.otlpValuesMax} values`);
}

export function tooDeep(): never {
  throw new RejectedSignal(`an attribute is nested deeper than ${limits.otlpDepthMax} levels`);
}
