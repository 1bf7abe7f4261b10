import type { NarrowTrace } from '../../core/trace-fields.ts';
import type { PackedPayloads } from '../payload.ts';
import type { Assigned } from '../sequencer.ts';
import type { Values } from './connection.ts';

/** The traces of one transaction, in the form in which an insert takes them. */
export interface BatchRows {
  /** One of them, by which the transaction can be found; null if there are none. */
  readonly first: { teamId: string; id: string } | null;
  readonly traceCount: number;
  /** How many of them have payloads. */
  readonly payloadCount: number;
  add(teamId: string, assigned: Assigned, trace: NarrowTrace, payloads: PackedPayloads): void;
  /** The parameters of an insert into `traces`. */
  traceValues(): Values;
  /** The parameters of an insert into `trace_payloads`. */
  payloadValues(): Values;
}
