-- Who did what: changes by REST, by the operator's command and by pages, and calls of MCP tools. No personal data: arguments are ids, times, words of
-- the service and numbers of settings; everything else is masked before it comes here.
create table audit_entries (
  id text primary key,
  -- Null: of no account.
  account_id text references accounts on delete cascade,
  at timestamptz not null,
  actor_kind text not null check (actor_kind in ('api_key', 'mcp_client', 'user', 'operator')),
  key_id text,
  client_id text,
  user_id text,
  action text not null,
  arguments jsonb not null,
  -- Null: it was begun, and nobody told its end.
  result text check (result in ('success', 'error')),
  error_code text,
  call_ids text[] not null default '{}',
  request_id text
);
create index on audit_entries (account_id, id);
create index on audit_entries (account_id, at);
create index audit_entries_calls on audit_entries using gin (call_ids) where call_ids <> '{}';
