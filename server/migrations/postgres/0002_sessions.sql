-- Secrets of this installation, by name: "session" is the key that signs session cookies. All servers share it.
create table server_secrets (
  name text collate "C" primary key,
  value bytea not null
);

-- One-time codes that sign in to the dashboard. The code itself is never stored, only its SHA-256. A used code is deleted.
create table sign_in_codes (
  code_hash text collate "C" primary key,
  key_id text collate "C" not null,
  expires_at_us bigint not null
);
