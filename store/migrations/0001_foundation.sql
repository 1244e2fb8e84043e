-- Accounts, workers, calls and their events, webhooks and jobs. Ids are UUIDv7 text made by the application.
-- Every table of a tenant carries account_id, and every lookup names it.

create table accounts (
  id text primary key,
  name text not null,
  slug text not null unique,
  -- {maxConcurrentCalls?: number}
  config jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

create table api_keys (
  id text primary key,
  account_id text not null references accounts on delete cascade,
  name text not null,
  -- The first characters, to recognise a key by; the key itself is stored nowhere.
  prefix text not null,
  hash bytea not null unique,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  expires_at timestamptz,
  revoked_at timestamptz
);

create table workers (
  id text primary key,
  account_id text not null references accounts on delete cascade,
  name text not null,
  language text not null,
  inbound_phone_number text,
  outbound_phone_number text,
  is_active boolean not null default true,
  config jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (account_id, id)
);

create table documents (
  id text primary key,
  account_id text not null references accounts on delete cascade,
  title text not null,
  file_name text not null,
  type text not null default 'txt',
  content text not null,
  is_active boolean not null default true,
  status text not null check (status in ('queued', 'completed', 'failed')),
  tag_keys text[] not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (account_id, id)
);

create table document_workers (
  account_id text not null,
  document_id text not null,
  worker_id text not null,
  primary key (document_id, worker_id),
  foreign key (account_id, document_id) references documents (account_id, id) on delete cascade,
  foreign key (account_id, worker_id) references workers (account_id, id) on delete cascade
);
create index on document_workers (worker_id);

-- A process that runs call actors. It is alive while its lease runs.
create table nodes (
  id text primary key,
  started_at timestamptz not null default now(),
  lease_until timestamptz not null
);

create table calls (
  id text primary key,
  account_id text not null references accounts on delete cascade,
  worker_id text not null,
  session_id text not null,
  direction text not null check (direction in ('inbound', 'outbound')),
  transport text not null check (transport in ('webrtc', 'sip_trunk')),
  -- scheduled, queued, ringing, in_progress or a terminal status: see model/call.ts
  progress text not null,
  outcome text,
  failed_reason text,
  provider_status text,
  post_processing_status text not null default 'none',
  from_number text,
  to_number text,
  person_id text,
  customer jsonb,
  context text,
  metadata jsonb,
  -- What the creator asked for this call alone: {instructions?, locale?, config?}
  request jsonb not null default '{}',
  -- The same, from call.worker_request: {instructions?, config?}
  hook_answer jsonb not null default '{}',
  -- External tool definitions with their secrets encrypted
  external_tools jsonb not null default '[]',
  next_action jsonb,
  dimensions jsonb,
  recording_key text,
  recorded_ms integer,
  scheduled_at timestamptz,
  started_at timestamptz,
  ended_at timestamptz,
  created_at timestamptz not null default now(),
  -- The actor. Whoever takes a call over raises epoch; writes of an older epoch, or of a stale version, change nothing.
  owner text,
  epoch integer not null default 0,
  version integer not null default 0,
  snapshot jsonb not null,
  finished boolean not null default false,
  unique (account_id, id),
  foreign key (account_id, worker_id) references workers (account_id, id)
);
create index on calls (account_id, created_at desc);
create index on calls (account_id, worker_id) where not finished;
create index on calls (owner) where not finished;

-- Everything the call machine received and asked for, in order. `replay` runs it again.
create table call_events (
  call_id text not null references calls on delete cascade,
  seq integer not null,
  account_id text not null,
  epoch integer not null,
  at timestamptz not null,
  event jsonb not null,
  effects jsonb not null,
  -- The machine had no use for the event in its state.
  ignored boolean not null,
  primary key (call_id, seq)
);

create table transcript_turns (
  call_id text not null references calls on delete cascade,
  turn_index integer not null,
  account_id text not null,
  role text not null check (role in ('user', 'agent')),
  text text not null,
  from_ms integer not null,
  to_ms integer not null,
  confidence real,
  source text,
  created_at timestamptz not null default now(),
  primary key (call_id, turn_index)
);

-- A browser's way into its call.
create table web_sessions (
  id text primary key,
  account_id text not null,
  call_id text not null unique references calls on delete cascade,
  token_hash bytea not null unique,
  token_expires_at timestamptz not null,
  token_used_at timestamptz,
  resume_hash bytea unique,
  -- null: any
  allowed_origins text[]
);

create table webhook_subscriptions (
  id text primary key,
  account_id text not null references accounts on delete cascade,
  worker_id text,
  event_type text not null,
  url text not null,
  -- Encrypted: signing needs the plaintext.
  signing_secret text not null,
  headers jsonb not null default '{}',
  timeout_ms integer not null,
  enabled boolean not null default true,
  required boolean not null default false,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  foreign key (account_id, worker_id) references workers (account_id, id) on delete cascade
);
create index on webhook_subscriptions (account_id);

-- The outbox. A lane is one (call, subscription); its deliveries go in order of seq, one at a time.
create table deliveries (
  id text primary key,
  seq bigint generated always as identity,
  account_id text not null references accounts on delete cascade,
  subscription_id text not null references webhook_subscriptions on delete cascade,
  call_id text not null references calls on delete cascade,
  event_type text not null,
  -- The body to the letter: what is signed is what is sent.
  body text not null,
  event_at timestamptz not null,
  status text not null default 'pending' check (status in ('pending', 'delivered', 'exhausted')),
  attempts integer not null default 0,
  run_at timestamptz not null default now(),
  claimed_by text,
  claimed_until timestamptz,
  last_status_code integer,
  last_error text,
  delivered_at timestamptz,
  created_at timestamptz not null default now()
);
create unique index deliveries_ended_once on deliveries (call_id, subscription_id) where event_type = 'call.ended';
create index deliveries_lane on deliveries (call_id, subscription_id, seq) where status = 'pending';
create index deliveries_due on deliveries (run_at) where status = 'pending';

-- Durable waits: something to do for a call at run_at.
create table jobs (
  id text primary key,
  account_id text not null references accounts on delete cascade,
  call_id text not null references calls on delete cascade,
  kind text not null,
  run_at timestamptz not null,
  attempts integer not null default 0,
  claimed_by text,
  claimed_until timestamptz,
  created_at timestamptz not null default now(),
  unique (call_id, kind)
);
create index on jobs (run_at);
