-- SIP messages of telephone calls, without secrets, written once when the call is over. They go with their calls.
create table call_messages (
  call_id text not null references calls on delete cascade,
  seq integer not null,
  account_id text not null,
  at timestamptz not null,
  direction text not null check (direction in ('in', 'out')),
  protocol text not null,
  local text not null,
  remote text not null,
  text text not null,
  -- Of the first one: how many more there were.
  left_out integer not null default 0,
  primary key (call_id, seq)
);
