-- Times are microseconds since 1970 in UTC. Everything that belongs to one team has its team_id first in the primary key, so that the
-- tables can be distributed by it; small tables can be copied to every node. Labels are compared by their bytes (collate "C"), as in every
-- store: in a database with another collation, every entry of an index would be compared by its rules.

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
  -- The key that replaced this one in a rotation.
  replaced_by text
);

-- Separate from api_keys: it changes once per minute and key.
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

create table traces (
  team_id uuid not null,
  id uuid not null,
  seq bigint not null,
  created_at_us bigint not null,
  started_at_us bigint,
  cost_usd double precision,
  prompt_tokens integer,
  completion_tokens integer,
  latency_ms integer,
  cache_read_tokens integer,
  cache_write_tokens integer,
  reasoning_tokens integer,
  ttft_ms integer,
  is_error boolean not null,
  model text collate "C" not null,
  feature_name text collate "C",
  user_identifier text collate "C",
  -- The exact model that answered, if the app asked for another name.
  response_model text collate "C",
  environment text collate "C",
  provider text collate "C",
  session_id text collate "C",
  run_id text collate "C",
  error_type text collate "C",
  -- client or computed. Null if the cost is not known, and for traces of clients if the server does not compute costs.
  cost_source text collate "C",
  -- The cost in the form in which it is added up, and the bin of the latency histogram. Both follow from the columns above.
  cost_micros bigint,
  cost_picos integer,
  latency_bin smallint,
  primary key (team_id, seq)
);

create unique index traces_by_id on traces (team_id, id);

-- The time of the call decides its day and hour.
create index traces_by_time on traces (team_id, coalesce(started_at_us, created_at_us));
create index traces_with_errors on traces (team_id, seq) where is_error;

-- Lookups. Blocks of 16,384 traces come first, so that new entries stay on few pages, whatever their values are.
create index traces_by_user on traces (team_id, (seq >> 14), user_identifier) where user_identifier is not null;
create index traces_by_session on traces (team_id, (seq >> 14), session_id) where session_id is not null;
create index traces_by_run on traces (team_id, (seq >> 14), run_id) where run_id is not null;

-- The long texts of a trace. A trace without any has no row. Bits of zstd_mask say which are compressed: 1 input, 2 output,
-- 4 error_message, 8 metadata.
create table trace_payloads (
  team_id uuid not null,
  seq bigint not null,
  checksum bigint not null,
  zstd_mask smallint not null,
  error_message bytea,
  metadata bytea,
  input bytea,
  output bytea,
  primary key (team_id, seq)
);

-- PostgreSQL need not try to compress them again.
alter table trace_payloads
  alter column error_message set storage external,
  alter column metadata set storage external,
  alter column input set storage external,
  alter column output set storage external;

-- A request with an Idempotency-Key, committed with its traces. Its reply is built again from them, so only what cannot be read there is
-- stored: which traces they are, and what was rejected. The key and the body are hashes.
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

-- A call of the function that stores traces, so that a server whose connection broke can find out what became of it. Without an answer,
-- the call must not store anything any more.
create table store_calls (
  -- One of the teams of the call.
  team_id uuid not null,
  token uuid not null,
  answer text,
  expires_at_us bigint not null,
  primary key (team_id, token)
);

create index store_calls_by_expiry on store_calls (expires_at_us);

-- Each change of a trace: its values before, with weight -1, and after, with weight 1. Rollups add them up like traces.
create table trace_changes (
  team_id uuid not null,
  change_no bigint not null,
  seq bigint not null,
  weight smallint not null,
  changed_at_us bigint not null,
  created_at_us bigint not null,
  started_at_us bigint,
  cost_usd double precision,
  prompt_tokens integer,
  completion_tokens integer,
  latency_ms integer,
  cache_read_tokens integer,
  cache_write_tokens integer,
  reasoning_tokens integer,
  ttft_ms integer,
  is_error boolean not null,
  model text collate "C" not null,
  feature_name text collate "C",
  user_identifier text collate "C",
  response_model text collate "C",
  environment text collate "C",
  provider text collate "C",
  session_id text collate "C",
  run_id text collate "C",
  error_type text collate "C",
  cost_source text collate "C",
  cost_micros bigint,
  cost_picos integer,
  latency_bin smallint,
  primary key (team_id, change_no)
);

-- Numbers the changes of each team without a gap. Apart from the counters of traces, which every write locks.
create table change_counters (
  team_id uuid primary key references teams (id),
  last_change_no bigint not null
);

-- The rollups of a generation contain exactly the traces up to seq and the changes up to change_no. One generation of each team is active;
-- another one may be under construction.
create table roll_marks (
  team_id uuid not null references teams (id),
  generation integer not null,
  time_zone text not null,
  is_active boolean not null,
  seq bigint not null,
  change_no bigint not null,
  primary key (team_id, generation)
) with (fillfactor = 50);

create unique index roll_marks_active on roll_marks (team_id) where is_active;

-- Sums by dimension set (core/dimensions.ts), grain, time bucket and group. With the bucket before the group, the rows of one day stay
-- together. Most questions do not need the latency histogram, so it is the last column.
create table rollups (
  team_id uuid not null,
  generation integer not null,
  set_no smallint not null,
  grain smallint not null,
  bucket bigint not null,
  group_hash uuid not null,
  calls bigint not null,
  uncosted_calls bigint not null,
  latency_count bigint not null,
  latency_sum bigint not null,
  cost_micros bigint not null,
  cost_picos bigint not null,
  prompt_tokens bigint not null,
  completion_tokens bigint not null,
  cache_read_tokens bigint not null,
  cache_write_tokens bigint not null,
  reasoning_tokens bigint not null,
  latencies bytea not null,
  primary key (team_id, generation, set_no, grain, bucket, group_hash)
) with (fillfactor = 85);

-- The values of each group once: four long labels would not fit into an index row.
create table rollup_groups (
  team_id uuid not null,
  group_hash uuid not null,
  set_no smallint not null,
  is_error boolean not null,
  environment text collate "C",
  provider text collate "C",
  model text collate "C",
  feature_name text collate "C",
  user_identifier text collate "C",
  primary key (team_id, group_hash)
);

-- Secrets of this installation, by name: "session" is the key that signs session cookies. All servers share it.
create table server_secrets (
  name text collate "C" primary key,
  value bytea not null
);

-- One-time codes that sign in to the dashboard. The code itself is never stored, only its SHA-256. A used code is deleted.
create table sign_in_codes (
  code_hash text collate "C" primary key,
  key_id text collate "C" not null,
  expires_at_us bigint not null
);

-- Dashboard sessions that were signed out before their end: their cookies are refused. Sessions that are over are removed when the next one
-- is added. The id is no secret: without the signature of its cookie it opens nothing.
create table ended_sessions (
  ends_at_us bigint not null,
  id text collate "C" not null,
  primary key (ends_at_us, id)
);

-- Prices that operators have set, for a team (null for all teams), a model and a first day. A change replaces the row by one with a higher
-- number, so that servers notice it. A price is pico-dollars per token; a row without input and output says that it was removed. Days are
-- days since 1970 in UTC.
create table price_entries (
  no bigint primary key,
  team_id uuid references teams (id),
  model text not null,
  from_day integer not null,
  input bigint,
  output bigint,
  cache_read bigint,
  cache_write bigint,
  reasoning bigint,
  set_at_us bigint not null,
  set_by text not null
);

-- What was computed again, and when, by whom and with which result. The traces up to done_seq are done; the run ends with those up to
-- last_seq. A run without finished_at_us was interrupted and can be continued.
create table reprice_runs (
  team_id uuid not null,
  id uuid not null,
  started_at_us bigint not null,
  finished_at_us bigint,
  run_by text not null,
  request text not null,
  done_seq bigint not null,
  last_seq bigint not null,
  result text not null,
  primary key (team_id, id)
);
