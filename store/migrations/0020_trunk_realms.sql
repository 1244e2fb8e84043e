-- The realms that a trunk's password has been proved to, by the host of the gateway or registrar: no other is answered there.
create table trunk_realms (
  trunk_id text not null references trunks on delete cascade,
  account_id text not null references accounts on delete cascade,
  host text not null,
  -- Empty: nothing was proved yet, only refused.
  realms text[] not null default '{}',
  -- Why a challenge was not answered last, for people; null since one was.
  refused text,
  updated_at timestamptz not null,
  primary key (trunk_id, host)
);
create index on trunk_realms (account_id);

-- New trunks want `qop` in challenges. Those of before may depend on a registrar that knows none, and go on as they were.
update trunks set config = config || '{"digestQop": "optional"}' where password is not null and not config ? 'digestQop';
