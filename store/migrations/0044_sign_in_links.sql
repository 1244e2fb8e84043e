-- Links that sign a user in once, without a password: npm start prints one for the user of the demo account.
create table sign_in_links (
  token_hash bytea primary key,
  user_id text not null references users on delete cascade,
  expires_at timestamptz not null
);
create index on sign_in_links (user_id);
