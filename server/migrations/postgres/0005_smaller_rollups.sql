-- A server that knows the counter sends a whole transaction at once, which stores nothing if the counter is not as expected. If its
-- reply is lost, the fence is moved, so that the transaction cannot be executed later.
alter table team_counters add column fence integer not null default 0;

-- Most questions do not need the latency histogram, so it is apart from the sums. Everything is added up again: answers add the traces
-- that are not in the sums yet.
truncate rollup_rows;

alter table rollup_rows add column latencies bytea not null;

delete from team_marks where not is_active;

update team_marks m set hot_seq = c.first_seq - 1, wide_seq = c.first_seq - 1
from team_counters c where c.team_id = m.team_id;

-- Labels are compared by their bytes. In a database with another collation, every entry of an index would be compared by its rules.
alter table traces
  alter column model type text collate "C",
  alter column feature_name type text collate "C",
  alter column user_identifier type text collate "C",
  alter column response_model type text collate "C",
  alter column environment type text collate "C",
  alter column provider type text collate "C",
  alter column session_id type text collate "C",
  alter column run_id type text collate "C",
  alter column error_type type text collate "C";
