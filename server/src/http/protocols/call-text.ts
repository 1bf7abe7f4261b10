import { namesByRow, noRank, parsedAttribute, rowIndex } from './attributes.ts';
import { indexedPrefixes } from './call-table.ts';
import { isObject } from './signal.ts';
import type { AttributeValue, Attributes, Signal, SignalEvent } from './signal.ts';

/** What the model was asked and what it answered, as text or as a JSON list of messages, which the dashboard shows as a chat. */

/** These hold whole messages. Other attributes only if there are none with positions in their names. */
const wholeInput = ranksOf('input', ['tracetally.input', 'gen_ai.input.messages']);
const wholeOutput = ranksOf('output', ['tracetally.output', 'gen_ai.output.messages']);

function ranksOf(row: 'input' | 'output', names: readonly string[]): ReadonlySet<number> {
  return new Set(names.map((name) => namesByRow[rowIndex[row]]?.indexOf(name) ?? noRank));
}

export function inputOf({ attributes, events }: Signal): string | null {
  const rank = attributes.rank(rowIndex.input);
  if (!wholeInput.has(rank)) {
    const messages = indexedMessages(attributes, indexedPrefixes.input);
    if (messages) return JSON.stringify(messages);
    const inEvents = inputOfEvents(events);
    if (inEvents !== null) return inEvents;
  }
  const messages = textOf(attributes.value(rowIndex.input));
  const system = textOf(attributes.value(rowIndex.systemInstructions));
  if (system === null || messages === null) return messages ?? system;
  return isJson(messages) && isJson(system)
    ? `{"system":${system},"messages":${messages}}`
    : messages;
}

export function outputOf({ attributes, events }: Signal): string | null {
  const rank = attributes.rank(rowIndex.output);
  if (!wholeOutput.has(rank)) {
    const messages = indexedMessages(attributes, indexedPrefixes.output);
    if (messages) return plainOrJson(messages);
    const inEvents = outputOfEvents(events);
    if (inEvents !== null) return inEvents;
  }
  const value = attributes.value(rowIndex.output);
  const toolCalls = attributes.value(rowIndex.toolCalls);
  if (toolCalls !== undefined) {
    const message = { role: 'assistant', content: value ?? null, tool_calls: parsed(toolCalls) };
    return JSON.stringify([message]);
  }
  if (value === undefined) return null;
  return wholeOutput.has(rank) ? plainOrJson(parsed(value)) : textOf(value);
}

function textOf(value: AttributeValue | undefined): string | null {
  if (value === undefined || value === null) return null;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Cheaper than parsing; a text that was cut off is shown as it is. */
function isJson(text: string): boolean {
  return /^\s*[[{"].*[\]}"]\s*$/s.test(text);
}

function parsed(value: AttributeValue): AttributeValue {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value)) return value;
  return parsedAttribute(value) ?? value;
}

/** The answer of the model without its wrapping, if it is nothing but text. */
function plainOrJson(messages: AttributeValue): string {
  const [only, ...others] = Array.isArray(messages) ? (messages as AttributeValue[]) : [messages];
  const plain = others.length === 0 && only !== undefined ? plainText(only) : null;
  return plain ?? (typeof messages === 'string' ? messages : JSON.stringify(messages));
}

function plainText(message: AttributeValue): string | null {
  if (typeof message === 'string') return message;
  if (!isObject(message) || 'tool_calls' in message || 'function_call' in message) return null;
  const content = message['content'] ?? message['parts'];
  if (typeof content === 'string') return content;
  if (!Array.isArray(content) || content.length === 0) return null;
  const texts = content.map((part: AttributeValue) =>
    isObject(part) ? (part['text'] ?? part['content']) : part,
  );
  const isText = content.every(
    (part: AttributeValue) =>
      !isObject(part) || [undefined, 'text'].includes(part['type'] as string),
  );
  return isText && texts.every((one) => typeof one === 'string') ? texts.join('') : null;
}

// --- Attributes with positions in their names ---

type Tree = { [segment: string]: Tree | AttributeValue };

/** OpenInference repeats the kind of the item after each position. */
const fillers = new Set(['message', 'message_content', 'tool_call']);
const segmentsMax = 12;

/** `llm.input_messages.0.message.content` and the like, as a list of messages; null if there is none. */
function indexedMessages(
  attributes: Attributes,
  prefixes: readonly string[],
): readonly AttributeValue[] | null {
  for (const prefix of prefixes) {
    const tree = Object.create(null) as Tree;
    let isEmpty = true;
    for (const attribute of attributes.indexed) {
      if (!attribute.name.startsWith(prefix)) continue;
      const segments = attribute.name.slice(prefix.length).split('.', segmentsMax);
      if (!/^\d{1,5}$/.test(segments[0] ?? '')) continue;
      isEmpty = false;
      plant(tree, segments, attributes.indexedValue(attribute));
    }
    if (!isEmpty) return asLists(tree) as readonly AttributeValue[];
  }
  return null;
}

function plant(tree: Tree, segments: readonly string[], value: AttributeValue): void {
  const path = segments.filter((segment) => !fillers.has(segment));
  const last = path.pop();
  if (last === undefined) return;
  let branch = tree;
  for (const segment of path) {
    const found = branch[segment];
    const next = isTree(found) ? found : (Object.create(null) as Tree);
    branch[segment] = next;
    branch = next;
  }
  branch[last === 'contents' ? 'content' : last] = value;
}

function isTree(value: unknown): value is Tree {
  return isObject(value) && Object.getPrototypeOf(value) === null;
}

/** Turns branches whose names are positions into lists. */
function asLists(tree: Tree | AttributeValue): AttributeValue {
  if (!isTree(tree)) return tree as AttributeValue;
  const names = Object.keys(tree);
  if (names.every((name) => /^\d{1,5}$/.test(name))) {
    return names.sort((a, b) => Number(a) - Number(b)).map((name) => asLists(tree[name] ?? null));
  }
  const entries = names.map((name) => [
    name === 'contents' ? 'content' : name,
    asLists(tree[name] ?? null),
  ]);
  return Object.fromEntries(entries) as AttributeValue;
}

// --- Events of a span ---

const messageEvent = /^gen_ai\.(system|user|assistant|tool)\.message$/;

function inputOfEvents(events: readonly SignalEvent[]): string | null {
  const messages: AttributeValue[] = [];
  for (const { name, attributes } of events) {
    const role = messageEvent.exec(name)?.[1];
    const whole = attributes['gen_ai.prompt'] ?? attributes['gen_ai.input.messages'];
    if (whole !== undefined && role === undefined) return textOf(whole);
    if (role !== undefined) messages.push(messageOfEvent(role, attributes));
  }
  return messages.length === 0 ? null : JSON.stringify(messages);
}

function outputOfEvents(events: readonly SignalEvent[]): string | null {
  const choices: AttributeValue[] = [];
  for (const { name, attributes } of events) {
    const whole = attributes['gen_ai.completion'] ?? attributes['gen_ai.output.messages'];
    if (whole !== undefined) return plainOrJson(parsed(whole));
    if (name !== 'gen_ai.choice') continue;
    const message = parsed(attributes['message'] ?? null);
    const fields = isObject(message) ? message : attributes;
    choices.push(messageOfEvent('assistant', fields));
  }
  return choices.length === 0 ? null : plainOrJson(choices);
}

function messageOfEvent(
  role: string,
  { content, tool_calls: toolCalls, role: own }: Readonly<Record<string, AttributeValue>>,
): AttributeValue {
  return {
    role: typeof own === 'string' ? own : role,
    content: parsed(content ?? null),
    ...(toolCalls !== undefined && { tool_calls: parsed(toolCalls) }),
  };
}
