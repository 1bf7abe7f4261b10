import type { ListedTrace } from '../../../client/src/reading.ts';
import type { Sheet } from '../parts/download-csv.tsx';

const columns = [
  'id',
  'created_at',
  'started_at',
  'status',
  'model',
  'feature_name',
  'user_identifier',
  'environment',
  'provider',
  'prompt_tokens',
  'cache_read_tokens',
  'completion_tokens',
  'latency_ms',
  'cost_usd',
  'error_type',
  'error_message',
  'session_id',
  'run_id',
] as const satisfies readonly (keyof ListedTrace)[];

/** The listed traces without their prompts, which are only known in part. */
export function sheetOfTraces(traces: readonly ListedTrace[]): Sheet {
  return {
    header: columns,
    rows: traces.map((trace) => columns.map((name) => trace[name] ?? null)),
  };
}
