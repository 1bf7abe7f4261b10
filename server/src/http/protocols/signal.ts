import type { RowIndex } from './call-table.ts';

/** The value of an attribute, as JSON would show it. */
export type AttributeValue =
  | string
  | number
  | boolean
  | null
  | readonly AttributeValue[]
  | { readonly [name: string]: AttributeValue };

/** A span or log record that cannot be stored. The message says why, and never contains a value that the caller sent. */
export class RejectedSignal extends Error {
  override readonly name = 'RejectedSignal';
}

/** A body, or part of it, that is not what the protocol describes. The message never contains a value that the caller sent. */
export class MalformedSignal extends Error {
  override readonly name: string = 'MalformedSignal';
}

/** Why reading or storing a signal failed, if that is the caller's fault. Other errors are thrown again. */
export function reasonToReject(error: unknown): string {
  if (error instanceof RejectedSignal) return error.message;
  if (error instanceof MalformedSignal) return `it is malformed: ${error.message}`;
  throw error;
}

/** Reads the attributes of one span, log record or resource that the table names, each when it is needed. */
export interface Attributes {
  /** The value of the preferred name in this row of the table; undefined if none of its names is present. */
  value(row: RowIndex): AttributeValue | undefined;
  /** Which name of the row that is. */
  rank(row: RowIndex): number;
  /** Attributes whose names contain the position in a list, such as `gen_ai.prompt.0.content`. */
  readonly indexed: readonly IndexedAttribute[];
  indexedValue(attribute: IndexedAttribute): AttributeValue;
}

export interface IndexedAttribute {
  name: string;
  raw: unknown;
}

export interface SignalEvent {
  name: string;
  attributes: Readonly<Record<string, AttributeValue>>;
}

/** A span or a log record. The decoders use one object for all signals of a request. */
export interface Signal {
  kind: 'span' | 'log';
  /** The name of the span or event. */
  name: string;
  scope: string;
  /** In hexadecimal; empty if not set. */
  traceId: string;
  spanId: string;
  parentSpanId: string;
  /** Microseconds since 1970; 0 if not set. */
  startUs: number;
  endUs: number;
  isError: boolean;
  statusMessage: string;
  attributes: Attributes;
  resource: Attributes;
  /** Counts the resources of the request. */
  app: number;
  events: readonly SignalEvent[];
  /** Why it cannot be accepted; null if it can. Then the other fields are not set. */
  rejectedBy: string | null;
}

export function isObject(value: unknown): value is Readonly<Record<string, AttributeValue>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
