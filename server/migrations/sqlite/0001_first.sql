-- Times are microseconds since 1970 in UTC.

create table teams (
  no integer primary key,
  id text not null unique,
  name text not null unique,
  created_at_us integer not null,
  time_zone text not null default 'UTC',
  -- Goes up with each request to build the rollups again.
  rebuild_no integer not null default 0,
  -- Of the entries of trace_changes. Older ones were pruned.
  first_change_no integer not null default 1,
  last_change_no integer not null default 0
) strict;

-- The rollup file belongs to the store with this id. A backup gets another one.
create table store_identity (id text not null) strict;
insert into store_identity (id) values (lower(hex(randomblob(16))));

-- The key itself is never stored, only its SHA-256.
create table api_keys (
  id text primary key,
  team_id text not null references teams (id),
  hash text not null unique,
  prefix text not null,
  name text,
  scope text not null check (scope in ('ingest', 'read', 'full')),
  created_at_us integer not null,
  expires_at_us integer,
  revoked_at_us integer,
  -- The key that replaced this one in a rotation.
  replaced_by text
) strict, without rowid;

-- Separate from api_keys: it changes once per minute and key.
create table key_uses (
  key_id text primary key,
  last_used_at_us integer not null
) strict, without rowid;

-- Each team numbers its traces 1, 2, 3 … without a gap.
create table team_counters (
  team_no integer primary key references teams (no),
  first_seq integer not null,
  last_seq integer not null,
  last_created_at_us integer not null
) strict;

-- key is team_no << 40 | seq, so a team's traces lie together in the order of their sequence. Only short values: everything that reads
-- many traces reads this table.
create table traces (
  key integer primary key,
  id blob not null,
  created_at_us integer not null,
  model text not null,
  is_error integer not null,
  prompt_tokens integer,
  completion_tokens integer,
  latency_ms integer,
  cost_usd real,
  feature_name text,
  user_identifier text,
  -- The exact model that answered, if the app asked for another name.
  response_model text,
  started_at_us integer,
  environment text,
  provider text,
  session_id text,
  run_id text,
  cache_read_tokens integer,
  cache_write_tokens integer,
  reasoning_tokens integer,
  ttft_ms integer,
  error_type text,
  -- client or computed. Null if the cost is not known, and for traces of clients if the server does not compute costs.
  cost_source text,
  -- The cost in the form in which it is added up, and the bin of the latency histogram. Both follow from the columns above.
  cost_micros integer,
  cost_picos integer,
  latency_bin integer
) strict;

create unique index traces_by_id on traces (id);
-- The time of the call decides its day and hour.
create index traces_by_event_time on traces (key >> 40, coalesce(started_at_us, created_at_us));
create index traces_with_errors on traces (key) where is_error = 1;
-- Questions about the errors of a time range read these traces alone.
create index errors_by_event_time on traces (key >> 40, coalesce(started_at_us, created_at_us)) where is_error = 1;

-- The payloads of a trace that has any, under the same key. zstd_mask says which are compressed: 1 input, 2 output, 4 error_message,
-- 8 metadata. The longest come last: a column behind a long one cannot be read without walking over it.
create table trace_payloads (
  key integer primary key,
  zstd_mask integer not null,
  checksum integer not null,
  error_message blob,
  metadata blob,
  input blob,
  output blob
) strict;

-- A request with an Idempotency-Key, committed with its traces. Its reply is built again from them, so only what cannot be read there is
-- stored: which traces they are, and what was rejected. The key and the body are hashes.
create table idempotency (
  team_no integer not null,
  key_hash text not null,
  body_hash text not null,
  first_seq integer not null,
  count integer not null,
  rejected text,
  expires_at_us integer not null,
  primary key (team_no, key_hash)
) strict, without rowid;

create index idempotency_by_expiry on idempotency (team_no, expires_at_us);

-- Each change of a trace: its values before, with weight -1, and after, with weight 1. Rollups add them up like traces. key is
-- team_no << 40 | change_no. token is random, so that an entry is recognised.
create table trace_changes (
  key integer primary key,
  seq integer not null,
  weight integer not null,
  token integer not null,
  changed_at_us integer not null,
  created_at_us integer not null,
  model text not null,
  is_error integer not null,
  prompt_tokens integer,
  completion_tokens integer,
  latency_ms integer,
  cost_usd real,
  feature_name text,
  user_identifier text,
  response_model text,
  started_at_us integer,
  environment text,
  provider text,
  session_id text,
  run_id text,
  cache_read_tokens integer,
  cache_write_tokens integer,
  reasoning_tokens integer,
  ttft_ms integer,
  error_type text,
  cost_source text,
  cost_micros integer,
  cost_picos integer,
  latency_bin integer
) strict;

-- Secrets of this installation, by name: "session" is the key that signs session cookies. A backup leaves them out.
create table server_secrets (
  name text primary key,
  value blob not null
) strict, without rowid;

-- One-time codes that sign in to the dashboard. The code itself is never stored, only its SHA-256. A used code is deleted.
create table sign_in_codes (
  code_hash text primary key,
  key_id text not null,
  expires_at_us integer not null
) strict, without rowid;

-- Dashboard sessions that were signed out before their end: their cookies are refused. Sessions that are over are removed when the next one
-- is added. The id is no secret: without the signature of its cookie it opens nothing.
create table ended_sessions (
  ends_at_us integer not null,
  id text not null,
  primary key (ends_at_us, id)
) strict, without rowid;

-- Prices that operators have set, for a team (null for all teams), a model and a first day. A change replaces the row by one with a higher
-- number, so that servers notice it. A price is pico-dollars per token; a row without input and output says that it was removed. Days are
-- days since 1970 in UTC.
create table price_entries (
  no integer primary key,
  team_id text references teams (id),
  model text not null,
  from_day integer not null,
  input integer,
  output integer,
  cache_read integer,
  cache_write integer,
  reasoning integer,
  set_at_us integer not null,
  set_by text not null
) strict;

-- What was computed again, and when, by whom and with which result. The traces up to done_seq are done; the run ends with those up to
-- last_seq. A run without finished_at_us was interrupted and can be continued.
create table reprice_runs (
  team_id text not null references teams (id),
  id text not null,
  started_at_us integer not null,
  finished_at_us integer,
  run_by text not null,
  request text not null,
  done_seq integer not null,
  last_seq integer not null,
  result text not null,
  primary key (team_id, id)
) strict, without rowid;
