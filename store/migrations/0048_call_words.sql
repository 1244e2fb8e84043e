-- Words of what was said in calls that are over, for their search. A row beside the call, so that no step of a running call has one more index to write.
create table call_words (
  call_id text primary key references calls on delete cascade,
  account_id text not null,
  -- Of the call.
  created_at timestamptz not null,
  -- Each once, as model/search-words.ts makes them.
  words text[] not null
);
-- The newest calls are looked through as they are.
create index call_words_of_account on call_words (account_id, created_at desc, call_id desc);

-- As keys: the end of the account's id, and a word.
create function call_word_keys(account text, words text[]) returns text[] language sql immutable parallel safe strict cost 1000 as $$
  select array(select right(account, 12) || word from unnest(words) as word)
$$;
create index call_words_found on call_words using gin (call_word_keys(account_id, words)) with (gin_pending_list_limit = 256);

-- How far calls of before are read, from the newest to the oldest: ids are in the order of time. No row: all are.
create table call_words_walk (below text not null);
insert into call_words_walk select 'ffffffff-ffff-7fff-bfff-ffffffffffff' where exists (select from calls);

-- A trigger, since a process of an older version may erase a call or forget what was said in it, and knows no words.
create function remove_call_words() returns trigger language plpgsql as $$
begin
  delete from call_words where call_id = new.id;
  return null;
end $$;
create trigger remove_call_words after update of erased_at, log_removed_at on calls
  for each row when (new.erased_at is not null or new.log_removed_at is not null) execute function remove_call_words();
