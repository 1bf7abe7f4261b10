-- Times are microseconds since 1970 in UTC, days are whole days since then. Everything that belongs to one team lies under its
-- team_id, which leads every primary key, so that the tables can be distributed by it; teams, api_keys and key_uses are small and
-- can be copied to every node. Names sort by their bytes (collate "C"), as in every store.

create table teams (
  id uuid primary key,
  name text collate "C" not null unique,
  created_at_us bigint not null
);

-- The key itself is never stored, only its SHA-256.
create table api_keys (
  id text collate "C" primary key,
  team_id uuid not null references teams (id),
  hash text collate "C" not null unique,
  prefix text not null,
  name text,
  scope text not null check (scope in ('ingest', 'read', 'full')),
  created_at_us bigint not null,
  expires_at_us bigint,
  revoked_at_us bigint,
  -- The key that a rotation put in this one's place.
  replaced_by text
);

-- Apart from api_keys, so that a use, once a minute and key, touches a small table.
create table key_uses (
  key_id text collate "C" primary key,
  last_used_at_us bigint not null
);

-- Each team numbers its traces 1, 2, 3 … without a gap. A writer locks the team's row here before all else. Half of each page stays
-- free, so that a row that changes with every commit stays where it is.
create table team_counters (
  team_id uuid primary key references teams (id),
  first_seq bigint not null,
  last_seq bigint not null,
  last_created_at_us bigint not null
) with (fillfactor = 50);

-- Payloads come last: a list of short columns never reads them. They are compressed by us or not worth it, so PostgreSQL need not
-- try. zstd_mask tells which of the three are compressed: 1 input, 2 output, 4 error_message.
create table traces (
  team_id uuid not null,
  id uuid not null,
  seq bigint not null,
  created_at_us bigint not null,
  cost_usd double precision,
  prompt_tokens integer,
  completion_tokens integer,
  latency_ms integer,
  zstd_mask smallint not null,
  is_error boolean not null,
  model text not null,
  feature_name text,
  user_identifier text,
  error_message bytea,
  input bytea,
  output bytea,
  primary key (team_id, seq)
);

alter table traces
  alter column error_message set storage external,
  alter column input set storage external,
  alter column output set storage external;

create unique index traces_by_id on traces (team_id, id);

-- Sums by team, dimension (0 total, 1 model, 2 feature, 3 user), day (-1: all time) and key. With the day before the key an
-- all-time answer is one contiguous range, and today's rows stay together.
create table rollups (
  team_id uuid not null,
  dimension smallint not null,
  day integer not null,
  key text collate "C" not null,
  calls bigint not null,
  errors bigint not null,
  latency_sum bigint not null,
  latency_count bigint not null,
  prompt_tokens bigint not null,
  completion_tokens bigint not null,
  cost_micros bigint not null,
  cost_picos bigint not null,
  primary key (team_id, dimension, day, key)
) with (fillfactor = 70);

-- A request that carried an Idempotency-Key, committed with its traces. Its reply is built again from them, so only what cannot
-- be read there is kept: which traces they are, and what was rejected. The key and the body are hashes.
create table idempotency (
  team_id uuid not null,
  key_hash text collate "C" not null,
  body_hash text not null,
  first_seq bigint not null,
  count integer not null,
  rejected text,
  expires_at_us bigint not null,
  primary key (team_id, key_hash)
);

create index idempotency_by_expiry on idempotency (team_id, expires_at_us);
