/** Every metric of the service: its name, what it means, and its labels. `docs/monitoring.md` lists them; a test compares the two. */
export interface Declaration {
  kind: 'counter' | 'gauge' | 'histogram';
  name: string;
  help: string;
  labels: readonly string[];
}

/** Upper bounds of the buckets, in seconds, rows or bytes. */
export const bounds = {
  seconds: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
  rows: [1, 4, 16, 64, 256, 1_024, 4_096],
  bytes: [1_024, 8_192, 65_536, 524_288, 4_194_304, 16_777_216],
} as const;

export const declarations = {
  buildInfo: declare('gauge', 'build_info', 'Always 1; the labels say what is running.', [
    'version',
    'store',
  ]),
  requests: declare('counter', 'http_requests_total', 'Requests that were answered.', [
    'method',
    'route',
    'status',
  ]),
  requestSeconds: declare(
    'histogram',
    'http_request_duration_seconds',
    'Time from the headers of a request to the last byte of its reply.',
    ['method', 'route'],
  ),
  failures: declare(
    'counter',
    'request_failures_total',
    'Requests that were refused or failed, by error code.',
    ['code'],
  ),
  keyLookups: declare(
    'counter',
    'key_lookups_total',
    'Requests whose API key or session was found in the cache (hit) or looked up in the database (miss).',
    ['credential', 'result'],
  ),
  bodyBytes: declare(
    'gauge',
    'request_bodies_bytes',
    'Bytes of request bodies in memory, until their reply is sent.',
  ),
  replyBytes: declare('gauge', 'large_replies_bytes', 'Bytes of large replies that are not sent.'),
  signals: declare(
    'counter',
    'signals_total',
    'OpenTelemetry spans and log records and LiteLLM payloads, by what became of them.',
    ['result'],
  ),
  tracesStored: declare('counter', 'traces_stored_total', 'Traces that were stored.'),
  waitingRows: declare('gauge', 'writes_waiting_rows', 'Traces that wait for the database.'),
  waitingBytes: declare(
    'gauge',
    'writes_waiting_bytes',
    'Bytes of traces that wait for the database.',
  ),
  storeErrors: declare(
    'counter',
    'store_errors_total',
    'Writes that the database did not store, by error code.',
    ['code'],
  ),
  storeBroken: declare(
    'gauge',
    'store_broken',
    '1 if writes have stopped until a restart, otherwise 0.',
  ),
  commitSeconds: declare(
    'histogram',
    'commit_duration_seconds',
    'Time to commit a transaction of writes.',
  ),
  commitRows: declare('histogram', 'commit_rows', 'Traces stored by one transaction.'),
  commitBytes: declare('histogram', 'commit_bytes', 'Bytes of the writes of one transaction.'),
  tailRows: declare(
    'gauge',
    'rollup_tail_rows',
    'Traces that are not in the rollups yet. Answers contain them, but take longer if they are many.',
  ),
  rolledRows: declare('counter', 'rolled_rows_total', 'Traces that were added to the rollups.'),
  rollSeconds: declare(
    'histogram',
    'roll_duration_seconds',
    'Time of one transaction that adds traces to the rollups.',
  ),
  rollFailures: declare('counter', 'roll_failures_total', 'Rolls that failed and are tried again.'),
  teamTraces: declare(
    'counter',
    'team_traces_total',
    'Traces that were stored, by team; only with --metrics-teams.',
    ['team'],
  ),
  teamCost: declare(
    'counter',
    'team_cost_usd_total',
    'Cost of these traces in US dollars, approximately; only with --metrics-teams.',
    ['team'],
  ),
} as const satisfies Record<string, Declaration>;

export type MetricName = keyof typeof declarations;

function declare(
  kind: Declaration['kind'],
  name: string,
  help: string,
  labels: readonly string[] = [],
): Declaration {
  return { kind, name: `tracetally_${name}`, help, labels };
}
