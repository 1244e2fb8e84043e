-- Where recordings are, and what is still to be done with them. No personal data: ids, times, and what a storage answered.
-- Rows outlive their call: a recording may have to be removed where it cannot be reached at that moment.
create table recordings (
  -- Of the sound: <accountId>/<callId>.wav
  key text primary key,
  call_id text not null,
  -- Id of the folder that it was written to.
  folder text not null,
  state text not null check (state in ('waiting', 'kept', 'shipped', 'failed', 'removing')),
  -- The compressed copy and the waveform are made, or cannot be.
  has_copies boolean not null default false,
  -- The storage may have something of it.
  in_storage boolean not null default false,
  attempts integer not null default 0,
  run_at timestamptz not null,
  claimed_by text,
  claimed_until timestamptz,
  -- Why the last attempt failed, for people.
  problem text,
  created_at timestamptz not null
);
create index on recordings (folder, state, created_at desc) where state in ('waiting', 'removing');
