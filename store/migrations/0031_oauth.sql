-- OAuth 2.1 for MCP clients. Identifiers that are credentials (codes, tokens, cookies) are hashed: a copy of the database holds none that works.

-- Clients that registered themselves (RFC 7591). Who they say they are is nobody's word but their own.
create table oauth_clients (
  id text primary key,
  metadata jsonb not null,
  created_at timestamptz not null,
  -- When somebody last approved it; null: nobody ever did.
  used_at timestamptz
);
create index on oauth_clients (coalesce(used_at, created_at));

-- What a person has allowed a client. The row goes when it is revoked, and all of its tokens with it.
create table oauth_grants (
  id text primary key,
  user_id text not null references users on delete cascade,
  account_id text not null references accounts on delete cascade,
  -- Of the scopes that are for one worker; null: none was chosen.
  worker_id text references workers on delete set null,
  client_id text not null,
  -- As the client called itself when it was approved, and where its answers go.
  client_name text not null,
  redirect_host text not null,
  scopes text[] not null,
  -- As the authorization server keeps it; null until it is complete.
  payload jsonb,
  created_at timestamptz not null,
  -- Of its last token.
  expires_at timestamptz not null,
  -- Good to a minute.
  used_at timestamptz
);
create index on oauth_grants (user_id, created_at);
create index on oauth_grants (account_id);
create index on oauth_grants (worker_id) where worker_id is not null;
create index on oauth_grants (client_id);
create index on oauth_grants (expires_at);

-- Codes, tokens and requests under way. Where a payload would hold its own identifier, a mark stands in its place.
create table oauth_payloads (
  kind text not null,
  -- SHA-256 of the identifier.
  id_hash bytea not null,
  payload jsonb not null,
  grant_id text references oauth_grants on delete cascade,
  consumed_at timestamptz,
  expires_at timestamptz not null,
  primary key (kind, id_hash)
);
create index on oauth_payloads (grant_id) where grant_id is not null;
create index on oauth_payloads (expires_at);

-- Keys that sign, sealed. One is used from active_from on, and verifies until its row goes.
create table oauth_keys (
  id text primary key,
  kind text not null check (kind in ('token', 'cookie')),
  sealed text not null,
  created_at timestamptz not null,
  active_from timestamptz not null
);
