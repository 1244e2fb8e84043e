-- What an operator asks of calls to come: that they are captured. Gone with the account or the worker; ids of calls only.
create table standing_captures (
  id text primary key,
  account_id text not null references accounts on delete cascade,
  -- Null: calls of any worker.
  worker_id text references workers on delete cascade,
  rtp text not null,
  -- Of each call.
  minutes integer not null,
  most_calls integer not null,
  call_ids text[] not null default '{}',
  -- False: its time is over, or its calls have come. Every call that begins looks for those that are open.
  is_open boolean not null default true,
  ends_at timestamptz not null,
  created_at timestamptz not null
);
create index on standing_captures (account_id) where is_open;
create index on standing_captures (worker_id);
