-- What the whole REST API needs besides: persons, trunks, idempotency, the delivery log, and the queue of outbound calls.

-- {id, name}: the kind of agent, as the operator names it.
alter table workers add column type jsonb;
-- Calls of this worker that may run at once; null: as many as its account may.
alter table workers add column max_concurrent_calls integer check (max_concurrent_calls >= 0);

-- Leads, customers and contacts of an account. mcp-server.md, Person.
create table persons (
  id text primary key,
  account_id text not null references accounts on delete cascade,
  type text not null check (type in ('lead', 'customer', 'phone_contact')),
  first_name text not null,
  last_name text not null,
  external_id text,
  email text,
  phone_number text,
  language text,
  company_name text,
  city text,
  country text,
  postal_code text,
  street_address text,
  state_or_province text,
  job_title text,
  facebook_url text,
  website_url text,
  linked_in_url text,
  notes text,
  tags text[] not null default '{}',
  worker_id text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (account_id, id),
  foreign key (account_id, worker_id) references workers (account_id, id) on delete set null (worker_id)
);
create unique index persons_external_id on persons (account_id, external_id);
create index on persons (account_id, phone_number);
create index on persons (account_id, lower(email));
create index on persons (worker_id);

-- Ways to the telephone network. `config` is what model/trunk.ts calls TrunkSettings; the password is encrypted and apart from it.
create table trunks (
  id text primary key,
  account_id text not null references accounts on delete cascade,
  name text not null,
  direction text not null check (direction in ('inbound', 'outbound', 'both')),
  is_active boolean not null default true,
  config jsonb not null default '{}',
  password text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (account_id, id)
);

create table trunk_workers (
  account_id text not null,
  trunk_id text not null,
  worker_id text not null,
  primary key (trunk_id, worker_id),
  foreign key (account_id, trunk_id) references trunks (account_id, id) on delete cascade,
  foreign key (account_id, worker_id) references workers (account_id, id) on delete cascade
);
create index on trunk_workers (worker_id);

-- The outbound call scripts the creator pinned; empty: all of the worker.
alter table calls add column script_ids text[] not null default '{}';
-- When an outbound call left the queue: from then on it counts as running. decisions.md, capacity.
alter table calls add column slot_granted_at timestamptz;
-- Who waits for a place or for its time. By worker: a long queue of a worker at its limit is not read to find who waits behind it.
create index calls_waiting on calls (account_id, worker_id, (coalesce(scheduled_at, created_at)), id)
  where transport = 'sip_trunk' and progress in ('scheduled', 'queued') and slot_granted_at is null and outcome is null;
create index calls_running on calls (account_id, worker_id)
  where outcome is null and (transport = 'webrtc' or direction = 'inbound' or slot_granted_at is not null);

-- Lists of calls, newest first: of an account, of those in one state, of one worker. A dashboard that asks who is in progress
-- must not read everything that is over.
drop index calls_account_id_created_at_idx;
create index calls_newest on calls (account_id, created_at desc, id desc);
create index calls_by_progress on calls (account_id, progress, created_at desc, id desc);
drop index calls_account_id_worker_id_idx;
create index calls_of_worker on calls (account_id, worker_id, created_at desc, id desc);

-- Whose calls lose their link when the person is deleted.
create index calls_person on calls (account_id, person_id) where person_id is not null;

-- Answers to requests that carried an Idempotency-Key, encrypted: some hold a token. Kept for 24 hours.
create table idempotency_keys (
  account_id text not null references accounts on delete cascade,
  key text not null,
  -- SHA-256 of operation and body.
  fingerprint bytea not null,
  answer text not null,
  created_at timestamptz not null default now(),
  primary key (account_id, key)
);
create index on idempotency_keys (created_at);

-- Since when no delivery has arrived; null: the last one did, or there was none. decisions.md: three days without one success disable.
alter table webhook_subscriptions add column failing_since timestamptz;
-- Why the service switched it off by itself: `gone` (410) or `failing` (three days); null: it did not.
alter table webhook_subscriptions add column disabled_reason text check (disabled_reason in ('gone', 'failing'));

-- The delivery log: one row per attempt.
create table delivery_attempts (
  delivery_id text not null references deliveries on delete cascade,
  attempt integer not null,
  at timestamptz not null,
  duration_ms integer not null,
  status_code integer,
  error text,
  -- The first 2 KiB of what the receiver answered.
  response_excerpt text,
  primary key (delivery_id, attempt)
);
create index deliveries_of_subscription on deliveries (subscription_id, id);
-- What may be sent again is rare, and looked for.
create index deliveries_exhausted on deliveries (subscription_id, id) where status = 'exhausted';
-- What the log tells better.
alter table deliveries drop column last_status_code, drop column last_error;
-- Claims go from subscription to subscription.
drop index deliveries_due;
create index deliveries_due on deliveries (subscription_id, run_at, seq) where status = 'pending';
-- For forgetting them.
create index deliveries_finished on deliveries (created_at) where status <> 'pending';

-- Dial times are claimed after all other jobs: each kind in the order of its times.
drop index jobs_run_at_idx;
create index jobs_due on jobs (run_at, id) where kind <> 'dial_time';
create index jobs_dial_time on jobs (run_at, id) where kind = 'dial_time';
