-- A ban may leave calls alone: then it covers questions only.
alter table bans add column covers text not null default 'all';
alter table bans drop constraint bans_pkey;
alter table bans add primary key (address, is_proven, covers);
