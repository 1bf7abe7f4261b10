/**
 * The distribution of tables on a Citus cluster. Small tables are on every node. Those that grow are distributed by team, so that all
 * data of one team is on one node. `tracetally distribute` sets this up, and a test checks every statement against it.
 */
export const tablesOnEveryNode = [
  'tracetally_schema',
  'teams',
  'api_keys',
  'key_uses',
  'server_secrets',
  'sign_in_codes',
  'ended_sessions',
  'price_entries',
] as const;

/** The others are co-located with the first one. */
export const tablesByTeam = [
  'team_counters',
  'traces',
  'trace_payloads',
  'trace_changes',
  'change_counters',
  'roll_marks',
  'rollups',
  'rollup_groups',
  'idempotency',
  'store_calls',
  'reprice_runs',
] as const;

export const teamColumn = 'team_id';
