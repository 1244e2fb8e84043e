-- People who sign in. Personal data: e-mail and name, which go with the row.
create table users (
  id text primary key,
  -- In lower case, ASCII.
  email text not null unique,
  name text,
  -- scrypt with its parameters: store/passwords.ts
  password_hash text not null,
  password_changed_at timestamptz not null,
  last_sign_in_at timestamptz,
  created_at timestamptz not null
);

create table memberships (
  account_id text not null references accounts on delete cascade,
  user_id text not null references users on delete cascade,
  role text not null check (role in ('owner', 'operator', 'viewer')),
  created_at timestamptz not null,
  primary key (account_id, user_id)
);
create index on memberships (user_id);

-- Open ones: the row goes when it is accepted. Personal data: e-mail.
create table invitations (
  id text primary key,
  account_id text not null references accounts on delete cascade,
  email text not null,
  role text not null check (role in ('owner', 'operator', 'viewer')),
  token_hash bytea not null unique,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  unique (account_id, email)
);
create index on invitations (expires_at);

-- Of browsers. The token is in the cookie only.
create table user_sessions (
  token_hash bytea primary key,
  user_id text not null references users on delete cascade,
  created_at timestamptz not null,
  -- Good to a minute.
  last_used_at timestamptz not null
);
create index on user_sessions (user_id, created_at);
create index on user_sessions (last_used_at);
