import { formatTimestamp } from '../core/clock.ts';
import { compile } from '../core/compile.ts';
import { extraNames, fieldNames, traceFields } from '../core/trace-fields.ts';
import type { FieldName, PayloadName } from '../core/trace-fields.ts';
import type { Trace } from '../core/trace.ts';

const nothing: ReadonlySet<PayloadName> = new Set();

/** A stored trace as JSON. Omitted payloads are absent, not null. */
export function traceJson(trace: Trace, omit: ReadonlySet<PayloadName> = nothing): string {
  const json = wireShape(trace);
  for (const name of omit) delete json[name];
  return JSON.stringify(json);
}

/** `JSON.stringify` leaves out what is undefined. */
const wireShape = compile<(trace: Trace) => Record<string, unknown>>(
  `(trace) => ({
    id: trace.id,
    team_id: trace.teamId,
    ${fieldNames.map((name) => `${name}: ${wireValue(name)}`).join(', ')},
    created_at: formatTimestamp(trace.createdAtUs),
    damaged: trace.damaged,
  })`,
  { formatTimestamp },
);

/** The value of a field in JSON, as source code. */
function wireValue(name: FieldName): string {
  const value = `trace.${name}`;
  const { kind } = traceFields[name];
  if (kind === 'time') return `${value} === null ? undefined : formatTimestamp(${value})`;
  if (kind === 'metadata') return `${value} === null ? undefined : JSON.parse(${value})`;
  return extraNames.has(name) ? `${value} ?? undefined` : value;
}
