-- Times are microseconds since 1970 in UTC, days are whole days since then.

create table teams (
  no integer primary key,
  id text not null unique,
  name text not null unique,
  created_at_us integer not null
) strict;

-- The key itself is never stored, only its SHA-256.
create table api_keys (
  id text primary key,
  team_no integer not null references teams (no),
  hash text not null unique,
  prefix text not null,
  name text,
  scope text not null check (scope in ('ingest', 'read', 'full')),
  created_at_us integer not null,
  expires_at_us integer,
  revoked_at_us integer,
  -- The key that a rotation put in this one's place.
  replaced_by text
) strict, without rowid;

-- Apart from api_keys, so that the writer touches a small table once a minute and key.
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

-- key is team_no << 40 | seq, so a team's traces lie together in the order of their sequence, and a page is one short walk
-- without any index. Payloads come last: a list of short columns never reads them. zstd_mask tells which of the three are
-- compressed: 1 input, 2 output, 4 error_message.
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
  zstd_mask integer not null,
  error_message blob,
  input blob,
  output blob
) strict;

create unique index traces_by_id on traces (id);

-- Sums by team, dimension (0 total, 1 model, 2 feature, 3 user), day (-1: all time) and key. With the day before the key an
-- all-time answer is one contiguous range, and today's rows stay together.
create table rollups (
  team_no integer not null,
  dimension integer not null,
  day integer not null,
  key text not null,
  calls integer not null,
  errors integer not null,
  latency_sum integer not null,
  latency_count integer not null,
  prompt_tokens integer not null,
  completion_tokens integer not null,
  cost_micros integer not null,
  cost_picos integer not null,
  primary key (team_no, dimension, day, key)
) strict, without rowid;
