-- Words of what was said in calls that are over, for their search. A row beside the call, so that no step of a running call has one more index to write.
create table call_words (
  call_id text primary key references calls on delete cascade,
  account_id text not null,
  -- Of the call.
  created_at timestamptz not null,
  -- Each once, as model/search-words.ts makes them.
  words text[] not null
);
-- Outside of the row: whoever looks for the newest of many calls reads many rows and no words.
alter table call_words alter column words set storage external;
alter table call_words set (toast_tuple_target = 128);

-- As keys: the end of the account's id, and a word.
create function call_word_keys(account text, words text[]) returns text[] language sql immutable parallel safe strict cost 1000 as $$
  select array(select right(account, 12) || word from unnest(words) as word)
$$;
create index call_words_found on call_words using gin (call_word_keys(account_id, words)) with (gin_pending_list_limit = 256);

-- How far calls of before are read, from the newest to the oldest: ids are in the order of time. No row: all are.
create table call_words_walk (below text not null);
insert into call_words_walk select 'ffffffff-ffff-7fff-bfff-ffffffffffff' where exists (select from calls);
