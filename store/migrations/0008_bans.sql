-- Addresses that are not heard for a while, as all processes know them. One that is gone from here before its end has been lifted.
create table bans (
  address text not null,
  is_proven boolean not null,
  failure text not null,
  since timestamptz not null,
  until timestamptz not null,
  primary key (address, is_proven)
);
create index bans_until on bans (until);
