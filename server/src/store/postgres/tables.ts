/**
 * How the tables lie on a Citus cluster. Small tables are on every node; those that grow are split by team, so that everything of one
 * team is on one node. `tracetally distribute` makes it so, and a test holds every statement to it.
 */
export const tablesOnEveryNode = [
  'tracetally_schema',
  'teams',
  'api_keys',
  'key_uses',
  'server_secrets',
  'sign_in_codes',
] as const;

/** The first one is what the others lie with. */
export const tablesByTeam = ['team_counters', 'traces', 'rollups', 'idempotency'] as const;

export const teamColumn = 'team_id';
