-- Sums by dimension set, time grain, bucket and group (core/dimensions.ts). The latency histogram is often longer than everything else,
-- and most questions do not need it, so it is the last column.
drop table rollup_rows;

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

-- Finds traces by a hash of a user, session or run (store/trace-lookups.ts). block is seq >> 14; seqs has the other bits of each
-- sequence number, two bytes each, ascending.
drop table trace_lookups;

create table trace_lookups (
  team_no integer not null,
  block integer not null,
  hash integer not null,
  seqs blob not null,
  primary key (team_no, block, hash)
) strict, without rowid;

-- Everything is added up again. As long as a table of this name exists, that is not finished (store/sqlite/move-old-traces.ts).
delete from team_marks where is_active = 0;

update team_marks set (hot_seq, wide_seq) = (
  select coalesce(max(c.first_seq), 1) - 1, coalesce(max(c.first_seq), 1) - 1
  from team_counters c where c.team_no = team_marks.team_no);

create table if not exists rollups (unused integer) strict;
