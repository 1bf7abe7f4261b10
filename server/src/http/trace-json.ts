import { formatTimestamp } from '../core/clock.ts';
import { extraNames, fieldNames } from '../core/trace-fields.ts';
import type { PayloadName } from '../core/trace-fields.ts';
import type { Trace } from '../core/trace.ts';

const nothing: ReadonlySet<PayloadName> = new Set();

/** A stored trace as JSON. Omitted payloads are absent, not null. */
export function traceJson(trace: Trace, omit: ReadonlySet<PayloadName> = nothing): string {
  const json: Record<string, unknown> = { id: trace.id, team_id: trace.teamId };
  for (const name of fieldNames) {
    if (trace[name] === null && extraNames.has(name)) continue;
    json[name] = trace[name];
  }
  json['created_at'] = formatTimestamp(trace.createdAtUs);
  if (trace.damaged) json['damaged'] = trace.damaged;
  for (const name of omit) delete json[name];
  return JSON.stringify(json);
}
