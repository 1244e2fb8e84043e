-- What came of simulated callers: the newest of each account. What was said in their calls stands with the calls, but for what a fault quotes.
create table simulations (
  id text primary key,
  account_id text not null references accounts on delete cascade,
  created_at timestamptz not null,
  -- By the clock of who ran them.
  ran_at timestamptz not null,
  target text not null,
  run_count integer not null,
  passed_count integer not null,
  content jsonb not null
);
create index simulations_of_account on simulations (account_id, id desc);
