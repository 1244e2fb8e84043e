-- A telephone number takes calls for one account. assigned_at: the operator's word; null: the account claimed it by its key. docs/security.md.
create table account_numbers (
  number text primary key,
  account_id text not null references accounts on delete cascade,
  assigned_at timestamptz,
  created_at timestamptz not null default now(),
  unique (account_id, number)
);

-- Two accounts could take one number at the same moment. The oldest worker keeps it, active ones first; the others are told.
create temporary table lost_numbers on commit drop as
select id, account_id, name, inbound_phone_number as number from (
  select id, account_id, name, inbound_phone_number,
    first_value(account_id) over (partition by inbound_phone_number order by is_active desc, created_at, id) as keeper
  from workers where inbound_phone_number is not null) found
where account_id <> keeper;
insert into call_refusals (id, account_id, direction, reason, details, called, first_at, last_at)
select gen_random_uuid()::text, account_id, 'inbound', 'unknown_number',
  'Several accounts had the number ' || number || ', and it stays with the one whose worker is the oldest: the worker “' || name ||
    '” has none now. The operator gives a number to an account by npm run admin -- number assign.',
  number, now(), now()
from lost_numbers;
update workers set inbound_phone_number = null where id in (select id from lost_numbers);

insert into account_numbers (number, account_id, assigned_at, created_at)
select inbound_phone_number, account_id, now(), min(created_at) from workers
where inbound_phone_number is not null group by inbound_phone_number, account_id;
alter table workers add constraint workers_number
  foreign key (account_id, inbound_phone_number) references account_numbers (account_id, number);

-- Whoever writes a worker takes its number with it. The lock waits for one that is being given back at this moment.
create function take_number() returns trigger language plpgsql as $$
begin
  loop
    insert into account_numbers (number, account_id, assigned_at) values (new.inbound_phone_number, new.account_id, now())
    on conflict (number) do nothing;
    perform from account_numbers where number = new.inbound_phone_number for key share;
    exit when found;
  end loop;
  return new;
end $$;
create trigger take_number before insert or update of inbound_phone_number on workers
  for each row when (new.inbound_phone_number is not null) execute function take_number();

-- A claim ends with the last worker that has the number; what the operator assigned stays.
create function give_number_back() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' and new.inbound_phone_number is not distinct from old.inbound_phone_number then return null; end if;
  perform from account_numbers
  where number = old.inbound_phone_number and account_id = old.account_id and assigned_at is null for update;
  if found then
    delete from account_numbers where number = old.inbound_phone_number and not exists (
      select from workers where account_id = old.account_id and inbound_phone_number = old.inbound_phone_number);
  end if;
  return null;
end $$;
create trigger give_number_back after update of inbound_phone_number or delete on workers
  for each row when (old.inbound_phone_number is not null) execute function give_number_back();
