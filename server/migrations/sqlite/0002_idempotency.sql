-- A request that carried an Idempotency-Key, committed with its traces. Its reply is built again from them, so only what cannot
-- be read there is kept: which traces they are, and what was rejected. The key and the body are hashes.
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
