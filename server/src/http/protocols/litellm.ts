import { fail } from '../../errors.ts';
import { JsonOverBounds, parseJson } from '../decoding/bounded-json.ts';
import type { JsonBounds } from '../decoding/bounded-json.ts';
import { limits } from '../../limits.ts';
import { ReadValue, SlotAttributes, isEmpty, nameCharsMax } from './attributes.ts';
import { litellmScope } from './call-rules.ts';
import { atLeastOne, openSignal, tooManySignals } from './otlp-signals.ts';
import type { Signals } from './otlp-signals.ts';
import { isObject } from './signal.ts';
import type { AttributeValue, Signal } from './signal.ts';

/**
 * Reads what the `generic_api` callback of the LiteLLM proxy posts: a JSON list of its standard logging payloads, one of them per line, or
 * a single one. Each becomes a signal whose attributes are named after the fields of the payload.
 */
export function readLitellm(text: string, bounds: JsonBounds): Signals {
  const payloads = payloadsIn(text, bounds);
  if (payloads.length > limits.otlpSignalsMax) tooManySignals();
  return { count: payloads.length, [Symbol.iterator]: () => readPayloads(payloads) };
}

function payloadsIn(text: string, bounds: JsonBounds): readonly AttributeValue[] {
  const whole = parse(text, bounds);
  if (whole !== undefined) return Array.isArray(whole) ? (whole as AttributeValue[]) : [whole];
  const lines = text.split('\n', limits.otlpSignalsMax + 1);
  if (lines.length > limits.otlpSignalsMax) tooManySignals();
  return lines.flatMap((line, i) => {
    if (line.trim() === '') return [];
    const payload = parse(line, bounds);
    return payload === undefined ? notJson(lines.length, i) : [payload];
  });
}

function notJson(lines: number, index: number): never {
  const say = `Line ${index + 1} of the body is not valid JSON.`;
  return fail('malformed_json', lines > 1 ? { say } : {});
}

/** Undefined if it is not valid JSON. */
function parse(text: string, bounds: JsonBounds): AttributeValue | undefined {
  try {
    return parseJson(text, bounds) as AttributeValue;
  } catch (error) {
    if (!(error instanceof JsonOverBounds)) return undefined;
    return fail('body_too_large', { say: `The body ${error.message}.` });
  }
}

function* readPayloads(payloads: readonly AttributeValue[]): Generator<Signal, void, undefined> {
  const attributes = new SlotAttributes(() => null);
  const signal = openSignal('span', attributes, new SlotAttributes(() => null));
  signal.scope = litellmScope;
  for (const payload of payloads) {
    attributes.slots.clear();
    signal.rejectedBy = isObject(payload) ? null : 'it is not a JSON object';
    if (isObject(payload)) readPayload(signal, attributes, payload);
    yield signal;
  }
}

type Fields = Readonly<Record<string, AttributeValue>>;

function readPayload(signal: Signal, attributes: SlotAttributes, payload: Fields): void {
  const { startTime, endTime, completionStartTime, response, call_type: type, stream } = payload;
  signal.startUs = microseconds(startTime);
  signal.endUs = microseconds(endTime);
  // Tools of MCP servers are logged like calls, with the name of the tool as the model.
  if (typeof type === 'string' && type.includes('mcp')) return;
  setAll(attributes, 'standard_logging', payload, 1);
  const firstUs = microseconds(completionStartTime);
  if (stream === true && firstUs > signal.startUs && firstUs < signal.endUs) {
    attributes.slots.set('ttft_ms', new ReadValue((firstUs - signal.startUs) / 1000));
  }
  const answer = answerIn(response);
  if (answer !== undefined) attributes.slots.set('tracetally.output', new ReadValue(answer));
}

/** Deep enough for the details of the usage. */
const depthMax = 5;

function setAll(attributes: SlotAttributes, path: string, fields: Fields, depth: number): void {
  for (const [name, value] of Object.entries(fields)) {
    if (isEmpty(value) || path.length + name.length >= nameCharsMax) continue;
    attributes.slots.set(`${path}.${name}`, new ReadValue(value));
    if (isObject(value) && depth < depthMax)
      setAll(attributes, `${path}.${name}`, value, depth + 1);
  }
}

/** The messages of a chat completion; other responses as they are. */
function answerIn(response: AttributeValue | undefined): AttributeValue | undefined {
  if (!isObject(response) || !Array.isArray(response['choices'])) return response ?? undefined;
  return response['choices'].map((choice: AttributeValue) =>
    isObject(choice) ? withoutEmpty(choice['message'] ?? choice['text'] ?? null) : choice,
  );
}

function withoutEmpty(message: AttributeValue): AttributeValue {
  if (!isObject(message)) return message;
  return Object.fromEntries(Object.entries(message).filter(([, value]) => value !== null));
}

/** Times are seconds since 1970. */
function microseconds(seconds: AttributeValue | undefined): number {
  if (typeof seconds !== 'number') return 0;
  return seconds > 0
    ? atLeastOne(seconds, Math.round(seconds * 1_000_000))
    : Math.floor(seconds * 1_000_000) + 0;
}
