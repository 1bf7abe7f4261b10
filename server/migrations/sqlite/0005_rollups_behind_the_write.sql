-- Rollups follow behind the write, in transactions of their own. The old rows are moved
-- afterwards, a few at a time, so that an interrupted upgrade continues; then the tables traces_old and rollups are dropped.
alter table traces rename to traces_old;
drop index traces_by_id;

-- key is team_no << 40 | seq, so a team's traces lie together in the order of their sequence. Only short values: everything that reads
-- many traces reads this table. Times are microseconds since 1970.
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
  error_type text
) strict;

create unique index traces_by_id on traces (id);
create index traces_by_event_time on traces (key >> 40, coalesce(started_at_us, created_at_us));
create index traces_with_errors on traces (key) where is_error = 1;

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

-- The rollups of a generation contain exactly the traces up to its marks. One generation of each team is active; a second one may be
-- under construction.
create table team_marks (
  team_no integer not null references teams (no),
  generation integer not null,
  time_zone text not null,
  is_active integer not null,
  hot_seq integer not null,
  wide_seq integer not null,
  primary key (team_no, generation)
) strict, without rowid;

create unique index team_marks_active on team_marks (team_no) where is_active = 1;

-- Sums by dimension set, time grain, bucket and group (core/dimensions.ts). The latency histogram is often longer than everything else,
-- and most questions do not need it, so it is the last column.
create table rollup_rows (
  team_no integer not null,
  generation integer not null,
  set_no integer not null,
  grain integer not null,
  bucket integer not null,
  group_hash blob not null,
  calls integer not null,
  sums blob not null,
  latencies blob not null,
  primary key (team_no, generation, set_no, grain, bucket, group_hash)
) strict, without rowid;

-- How often the rollups of a local day have changed, by speed: a reader that keeps sums of a day in memory knows whether they are still
-- right.
create table rollup_days (
  team_no integer not null,
  generation integer not null,
  day integer not null,
  hot_changes integer not null,
  wide_changes integer not null,
  primary key (team_no, generation, day)
) strict, without rowid;

-- The values of each group, once for all generations, grains and buckets. A column that the set does not have is null.
create table rollup_groups (
  team_no integer not null,
  group_hash blob not null,
  set_no integer not null,
  is_error integer not null,
  environment text,
  provider text,
  model text,
  feature_name text,
  user_identifier text,
  primary key (team_no, group_hash)
) strict, without rowid;

-- Finds traces by a hash of a user, session or run (store/trace-lookups.ts). block is seq >> 14; seqs has the other bits of each
-- sequence number, two bytes each, ascending.
create table trace_lookups (
  team_no integer not null,
  block integer not null,
  hash integer not null,
  seqs blob not null,
  primary key (team_no, block, hash)
) strict, without rowid;

insert into team_marks (team_no, generation, time_zone, is_active, hot_seq, wide_seq)
select t.no, 1, 'UTC', 1, coalesce(c.first_seq, 1) - 1, coalesce(c.first_seq, 1) - 1
from teams t left join team_counters c on c.team_no = t.no;
