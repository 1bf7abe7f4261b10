-- Who said what a call cost: client or computed. Null if the cost is not known, and for traces of clients if the server does not compute costs.
alter table traces add column cost_source text;

-- Prices that operators have set, for a team (null for all teams), a model and a first day. A change replaces the row by one with a higher
-- number, so that servers notice it. A price is pico-dollars per token; a row without input and output says that it was removed. Days are
-- days since 1970 in UTC.
create table price_entries (
  no integer primary key,
  team_no integer references teams (no),
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
  team_no integer not null references teams (no),
  id text not null,
  started_at_us integer not null,
  finished_at_us integer,
  run_by text not null,
  request text not null,
  done_seq integer not null,
  last_seq integer not null,
  result text not null,
  primary key (team_no, id)
) strict, without rowid;
