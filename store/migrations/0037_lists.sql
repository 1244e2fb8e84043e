-- Lists of calls by state, direction and worker. One text of all that is asked for: told as columns, the planner would rather walk through every call of
-- an account, or of a worker, than believe that a state is rare. store/calls.ts writes both to the letter.
create index calls_in_state on calls ((account_id || ' ' || progress || ' ' || direction), created_at desc, id desc);
-- Written when a call ends. Those that are not over are found by state alone.
create index calls_over_of_worker on calls ((account_id || ' ' || worker_id || ' ' || progress || ' ' || direction), created_at desc, id desc)
  where progress not in ('scheduled', 'queued', 'ringing', 'in_progress');
drop index calls_by_progress;

-- As keys: the end of the account's id, and a tag.
create function person_tags(account text, tags text[]) returns text[] language sql immutable parallel safe strict cost 1000 as $$
  select array(select right(account, 12) || tag from unnest(tags) as tag)
$$;
create index persons_by_tags on persons using gin (person_tags(account_id, tags)) with (gin_pending_list_limit = 256);
