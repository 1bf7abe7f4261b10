-- The narrow columns of a trace and its payloads are two tables from here on, and sums are added behind the write. The rows of the old
-- tables are moved by the server in small transactions, which then drops the old tables (store/postgres/move-traces.ts). A server of an
-- older version that is still running fails at its next statement.
alter table traces rename to old_traces;
alter table rollups rename to old_rollups;
-- So that one statement can read the old rows and the new ones.
alter table old_traces
  add column started_at_us bigint,
  add column cache_read_tokens integer,
  add column cache_write_tokens integer,
  add column reasoning_tokens integer,
  add column ttft_ms integer,
  add column environment text,
  add column provider text,
  add column session_id text,
  add column run_id text,
  add column error_type text,
  add column metadata bytea,
  add column checksum bigint;

-- A server that knows the counter sends a whole transaction at once, which stores nothing if the counter is not as expected. If its
-- reply is lost, the fence is moved, so that the transaction cannot be executed later.
alter table team_counters add column fence integer not null default 0;

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
  response_model text collate "C",
  environment text collate "C",
  provider text collate "C",
  session_id text collate "C",
  run_id text collate "C",
  error_type text collate "C",
  constraint traces_by_seq primary key (team_id, seq)
);

create unique index traces_by_trace_id on traces (team_id, id);

-- The time of the call decides its day and hour.
create index traces_by_time on traces (team_id, coalesce(started_at_us, created_at_us));
create index traces_with_errors on traces (team_id, seq) where is_error;

-- Lookups. Blocks of 16,384 traces come first, so that new entries stay on few pages, whatever their values are.
create index traces_by_user on traces (team_id, (seq >> 14), user_identifier) where user_identifier is not null;
create index traces_by_session on traces (team_id, (seq >> 14), session_id) where session_id is not null;
create index traces_by_run on traces (team_id, (seq >> 14), run_id) where run_id is not null;

-- The long texts of a trace. A trace without any has no row. Bits of zstd_mask say which are compressed: 1 input, 2 output,
-- 4 error_message, 8 metadata. PostgreSQL need not try to compress them again.
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

alter table trace_payloads
  alter column error_message set storage external,
  alter column metadata set storage external,
  alter column input set storage external,
  alter column output set storage external;

-- How far a team's traces are rolled up, per generation and speed. One generation is active; another one may be under construction.
create table team_marks (
  team_id uuid not null references teams (id),
  generation integer not null,
  time_zone text not null,
  is_active boolean not null,
  hot_seq bigint not null,
  wide_seq bigint not null,
  primary key (team_id, generation)
) with (fillfactor = 50);

create unique index team_marks_active on team_marks (team_id) where is_active;

-- Sums per dimension set (core/dimensions.ts), grain, time bucket and group. With the bucket before the group, the rows of one day stay
-- together.
create table rollup_rows (
  team_id uuid not null,
  generation integer not null,
  set_no smallint not null,
  grain smallint not null,
  bucket bigint not null,
  group_hash uuid not null,
  calls bigint not null,
  sums bytea not null,
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
