-- Dashboard sessions that were signed out before their end: their cookies are refused. Sessions that are over are removed when the next one
-- is added. The id is no secret: without the signature of its cookie it opens nothing.
create table ended_sessions (
  ends_at_us integer not null,
  id text not null,
  primary key (ends_at_us, id)
) strict, without rowid;
