-- Phone calls over SIP trunks: who looks after a trunk, how it does, and which calls were refused.

-- Inbound calls are found by the number that was called.
create index on workers (inbound_phone_number) where inbound_phone_number is not null;

-- The trunk that carries a phone call; null for web calls, and before one was chosen.
alter table calls add column trunk_id text references trunks on delete set null;
create index calls_on_trunk on calls (trunk_id) where outcome is null and trunk_id is not null;
-- When calls of a trunk, and outbound calls of an account, began lately: what they may begin in a second.
create index calls_of_trunk on calls (trunk_id, (coalesce(slot_granted_at, created_at))) where trunk_id is not null;
create index calls_granted on calls (account_id, slot_granted_at) where slot_granted_at is not null;
-- What an account has talked today, for its daily limit.
create index calls_outbound_started on calls (account_id, started_at) include (ended_at)
  where direction = 'outbound' and started_at is not null;

-- Where calls of a trunk may come from, in a form that finds the trunk by the address: allowed networks, gateways that are addresses.
create table trunk_addresses (
  account_id text not null,
  trunk_id text not null,
  network inet not null,
  primary key (trunk_id, network),
  foreign key (account_id, trunk_id) references trunks (account_id, id) on delete cascade
);
create index on trunk_addresses using gist (network inet_ops);
do $$
declare trunk record;
begin
  for trunk in
    select id, account_id, jsonb_array_elements_text(coalesce(config->'allowedAddresses', '[]')) as address from trunks
    union all
    select id, account_id, btrim(gateway->>'host', '[]')
    from trunks cross join jsonb_array_elements(coalesce(config->'gateways', '[]')) gateway
    where gateway->>'host' ~ '^[0-9.]+$' or gateway->>'host' like '%:%'
  loop
    begin
      insert into trunk_addresses (trunk_id, account_id, network) values (trunk.id, trunk.account_id, trunk.address::inet)
      on conflict do nothing;
    exception when invalid_text_representation then
      null; -- A host that looks like an address and is none: nobody calls from there.
    end;
  end loop;
end $$;

-- Registrations and gateways are looked after by one node each, for as long as its turn lasts.
create table trunk_states (
  trunk_id text primary key references trunks on delete cascade,
  account_id text not null references accounts on delete cascade,
  keeper text,
  kept_until timestamptz,
  -- model/trunk.ts, TrunkState
  state jsonb,
  updated_at timestamptz not null default now()
);
create index on trunk_states (account_id);

-- Calls that were not let in or out. Alike ones of a minute are one row with a count, so that a scanner cannot fill the table.
create table call_refusals (
  id text primary key,
  account_id text references accounts on delete cascade,
  trunk_id text references trunks on delete set null,
  call_id text,
  direction text not null check (direction in ('inbound', 'outbound')),
  reason text not null,
  details text not null,
  sip_status integer,
  address text,
  calling text,
  called text,
  count integer not null default 1,
  first_at timestamptz not null,
  last_at timestamptz not null
);
create index call_refusals_newest on call_refusals (account_id, last_at desc, id desc);
create index on call_refusals (last_at);
create index on call_refusals (trunk_id);
