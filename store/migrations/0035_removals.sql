-- What has been deleted, and whose many rows go by and by. It is in no read any more.
create table removals (
  id bigint generated always as identity primary key,
  account_id text not null references accounts on delete cascade,
  kind text not null check (kind in ('subscription', 'trunk', 'person')),
  subject_id text not null,
  -- The walk through the rows goes on behind this one.
  after_id text not null default '',
  claimed_until timestamptz,
  created_at timestamptz not null default now(),
  unique (kind, subject_id)
);

alter table webhook_subscriptions add column deleted_at timestamptz;

-- In the order of the walk.
create index calls_of_person on calls (account_id, person_id, id) where person_id is not null;
drop index calls_person;
create index call_refusals_of_trunk on call_refusals (trunk_id, id) where trunk_id is not null;
drop index call_refusals_trunk_id_idx;
