import { limits } from '../../limits.ts';
import { tooManySignals } from './otlp-signals.ts';
import { ProtobufReader, eachField, wire, within } from './protobuf-reader.ts';

/** The numbers of the outer fields, from the .proto files of OpenTelemetry. Both kinds of request have the same outer fields. */
const outer = { resources: 1, resource: 1, scopes: 2, scope: 1, signals: 2 } as const;

/** Where the signals of a scope are, and what they share. */
export interface ScopePart {
  resourceAt: number;
  resourceEnd: number;
  scope: string;
  /** The start and end of each signal. */
  signals: number[];
}

/** Finds the signals of a request without reading them. */
export function findSignals(body: Buffer): ScopePart[] {
  const reader = new ProtobufReader(body);
  const parts: ScopePart[] = [];
  // Empty resources and scopes count, too.
  let left = limits.otlpSignalsMax;
  const take = (count: number): void => {
    left -= count;
    if (left < 0) tooManySignals();
  };
  eachMessage(reader, outer.resources, () => {
    take(1);
    const found: ScopePart[] = [];
    let [resourceAt, resourceEnd] = [0, 0];
    while (reader.next()) {
      if (reader.field === outer.resource && reader.wireType === wire.bytes) {
        const length = reader.length();
        resourceAt = reader.at;
        resourceEnd = reader.at += length;
      } else if (reader.field === outer.scopes) {
        within(reader, () => {
          const part: ScopePart = { resourceAt: 0, resourceEnd: 0, scope: '', signals: [] };
          readScope(reader, part);
          take(Math.max(1, part.signals.length / 2));
          found.push(part);
        });
      } else {
        reader.skip();
      }
    }
    for (const part of found) parts.push(Object.assign(part, { resourceAt, resourceEnd }));
  });
  return parts;
}

function readScope(reader: ProtobufReader, part: ScopePart): void {
  while (reader.next()) {
    if (reader.field === outer.scope && reader.wireType === wire.bytes) {
      eachField(reader, 1, () => {
        reader.expect(wire.bytes);
        part.scope = reader.text();
      });
    } else if (reader.field === outer.signals) {
      reader.expect(wire.bytes);
      const length = reader.length();
      part.signals.push(reader.at, reader.at + length);
      reader.at += length;
      if (part.signals.length > 2 * limits.otlpSignalsMax) tooManySignals();
    } else {
      reader.skip();
    }
  }
}

/** Runs `read` on each message with this field number, and skips the other fields. */
function eachMessage(reader: ProtobufReader, field: number, read: () => void): void {
  while (reader.next()) {
    if (reader.field === field) within(reader, read);
    else reader.skip();
  }
}
