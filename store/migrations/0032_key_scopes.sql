-- What an API key may do. Keys of before may do everything.
alter table api_keys add column scopes text[] not null default '{read,calls,manage}'
  check (scopes <@ '{read,calls,manage}'::text[] and scopes <> '{}');
