-- Outbound calls that wait for a human being's word. What they hold is personal, and taken out as soon as it is settled; the rows go after their time.
create table confirmations (
  id text primary key,
  account_id text not null references accounts on delete cascade,
  user_id text not null,
  client_id text not null,
  kind text not null check (kind in ('single', 'batch')),
  -- SHA-256 of the token, which is stored nowhere.
  token_hash bytea not null unique,
  -- What was validated and shown, and will be placed: model/outbound-calls.ts, PlannedCall.
  calls jsonb not null,
  summary text not null,
  client_name text not null,
  state text not null default 'pending' check (state in ('pending', 'approved', 'denied', 'consumed', 'revoked')),
  call_count integer not null,
  -- Of what was placed.
  call_ids text[] not null default '{}',
  created_at timestamptz not null,
  expires_at timestamptz not null,
  settled_at timestamptz
);
create index confirmations_open on confirmations (account_id, user_id, client_id, expires_at)
  where state in ('pending', 'approved');
create index confirmations_expired on confirmations (expires_at);

-- Calls by number, whichever side it is on, newest first.
create index calls_to_number on calls (account_id, to_number, created_at desc, id desc) where to_number is not null;
create index calls_from_number on calls (account_id, from_number, created_at desc, id desc) where from_number is not null;
-- Calls by an id of another system: what the creator noted, or the Call-ID of the INVITE.
create index calls_external_id on calls (account_id, (metadata->>'externalCallId'), created_at desc, id desc)
  where metadata->>'externalCallId' is not null;
create index calls_sip_call_id on calls (account_id, (sip->>'callId'), created_at desc, id desc)
  where sip->>'callId' is not null;
-- Numbers of calls in a span of time are counted in the index alone.
create index calls_counted on calls (account_id, created_at)
  include (worker_id, direction, progress, started_at, ended_at);
