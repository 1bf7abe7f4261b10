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
