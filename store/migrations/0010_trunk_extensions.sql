-- By which users the peers of a trunk call its workers besides their numbers: a PBX calls a registered line by its name.
-- worker_id null: the oldest active worker of the trunk.
create table trunk_extensions (
  account_id text not null,
  trunk_id text not null,
  extension text not null,
  worker_id text,
  primary key (trunk_id, extension),
  foreign key (account_id, trunk_id) references trunks (account_id, id) on delete cascade,
  foreign key (account_id, worker_id) references workers (account_id, id) on delete cascade
);
create index on trunk_extensions (extension);
insert into trunk_extensions (account_id, trunk_id, extension)
select account_id, id, config->>'username' from trunks where coalesce(config->>'username', '') <> '';
