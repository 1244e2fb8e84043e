-- Dialogs of answered phone calls, so that the peers of a process that died can be told. They go with their calls.
create table sip_dialogs (
  call_id text primary key references calls on delete cascade,
  -- Who speaks to the peer: the edge that has the call, or the one that tells the peer that the call is over.
  node_id text not null,
  -- How many have taken it over.
  heirs integer not null default 0,
  trunk_id text not null,
  dialog jsonb not null
);
create index sip_dialogs_of_node on sip_dialogs (node_id);
alter table sip_dialogs set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
