-- Who said what a call cost: client or computed. Null if the cost is not known, and for traces of clients if the server does not compute costs.
alter table traces add column cost_source text collate "C";
-- Only while the traces of schema 3 are being moved.
alter table if exists old_traces add column cost_source text;

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
