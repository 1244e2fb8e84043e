-- Recordings of calls that are gone, until the store has removed them.
create table recording_removals (
  -- <accountId>/<callId>.wav
  key text primary key,
  ordered_at timestamptz not null
);
create index on recording_removals (ordered_at);

-- The call that a kept answer shows; null for answers of before it was kept, which are opened to see.
alter table idempotency_keys add column call_id text;
create index idempotency_keys_call on idempotency_keys (account_id, call_id);

-- What goes with a call is found by it.
create index deliveries_of_call on deliveries (call_id);
create index call_refusals_call on call_refusals (call_id) where call_id is not null;

-- The erasure of a person: what is to be looked for while it goes on, and what was done. Personal data: traces, until it is completed.
create table erasures (
  id text primary key,
  account_id text not null references accounts on delete cascade,
  -- SHA-256 of the account's and the person's id: who asks again is told what was done.
  person_hash bytea not null,
  -- PersonTraces; null once it is completed.
  traces jsonb,
  -- The walk through the account's calls goes on behind this one.
  after_call text,
  -- ErasedCounts
  erased jsonb not null,
  -- [{table, rows}]
  remaining jsonb not null default '[]',
  claimed_until timestamptz,
  created_at timestamptz not null,
  completed_at timestamptz,
  unique (account_id, person_hash)
);
create index on erasures (created_at) where completed_at is null;

-- When the person of a call was erased; null: nobody was.
alter table calls add column erased_at timestamptz;

-- What of a call was removed because its time was over; null: it is there, or never was.
alter table calls add column recording_removed_at timestamptz, add column log_removed_at timestamptz;
create index calls_recorded on calls (account_id, created_at)
  where started_at is not null and recording_removed_at is null and finished;
create index calls_logged on calls (account_id, created_at) where log_removed_at is null and finished;

-- What was removed on a day, UTC: how many of each kind.
create table retention_reports (
  account_id text not null references accounts on delete cascade,
  day date not null,
  recordings integer not null default 0,
  transcripts integer not null default 0,
  calls integer not null default 0,
  primary key (account_id, day)
);
