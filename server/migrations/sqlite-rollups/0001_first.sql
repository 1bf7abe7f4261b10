-- Everything in this file is derived from the traces of the database next to it. It can be deleted while no server runs: it is built again.

-- The id of that database.
create table rollup_store (id text not null) strict;

-- The rollups of a generation contain exactly the traces up to seq, and the changes up to change_no. trace_id and change_token tell whether
-- they are still the same. One generation of each team is active; a second one may be under construction.
create table roll_marks (
  team_no integer not null,
  generation integer not null,
  time_zone text not null,
  rebuild_no integer not null,
  is_active integer not null,
  seq integer not null,
  trace_id blob,
  change_no integer not null,
  change_token integer,
  primary key (team_no, generation)
) strict, without rowid;

create unique index roll_marks_active on roll_marks (team_no) where is_active = 1;

-- Sums by dimension set, time grain, bucket and group (core/dimensions.ts). The latency histogram is often longer than everything else,
-- and most questions do not need it, so it is the last column.
create table rollups (
  team_no integer not null,
  generation integer not null,
  set_no integer not null,
  grain integer not null,
  bucket integer not null,
  group_no integer not null,
  calls integer not null,
  uncosted_calls integer not null,
  latency_count integer not null,
  latency_sum integer not null,
  cost_micros integer not null,
  cost_picos integer not null,
  prompt_tokens integer not null,
  completion_tokens integer not null,
  cache_read_tokens integer not null,
  cache_write_tokens integer not null,
  reasoning_tokens integer not null,
  latencies blob not null,
  primary key (team_no, generation, set_no, grain, bucket, group_no)
) strict, without rowid;

-- The values of each group, once for all generations, grains and buckets. A column that the set does not have is null.
create table rollup_groups (
  no integer primary key,
  team_no integer not null,
  set_no integer not null,
  hash blob not null,
  is_error integer not null,
  environment text,
  provider text,
  model text,
  feature_name text,
  user_identifier text,
  unique (team_no, set_no, hash)
) strict;

-- Finds traces by a hash of a user, session or run (store/trace-lookups.ts). block is seq >> 14; seqs has the other bits of each
-- sequence number, two bytes each, ascending.
create table trace_lookups (
  team_no integer not null,
  block integer not null,
  hash integer not null,
  seqs blob not null,
  primary key (team_no, block, hash)
) strict, without rowid;
