-- Claims read the heads of lanes alone, however many deliveries wait. `behind`: an older delivery of the lane is pending. A claim marks those that it
-- finds so, while it holds the one before; whatever ends that one takes the mark from the next. What is new, or of before, has no mark, and is
-- looked at by a claim once.
alter table deliveries add column behind boolean not null default false;

-- A trigger, since a delivery ends in several statements, of processes of an older version too. Its queries see what was committed before this
-- delivery was locked to be ended: no mark that was made under its lock is missed. A delivery that is itself behind another has the next one left
-- to that other.
create function advance_lane() returns trigger language plpgsql as $$
declare
  next record;
begin
  loop
    select id, behind into next from deliveries
    where call_id = old.call_id and subscription_id = old.subscription_id and status = 'pending' and seq > old.seq
    order by seq limit 1;
    exit when not found or not next.behind;
    update deliveries set behind = false where id = next.id and status = 'pending' and behind;
    -- Otherwise it has just ended itself, and there may be another.
    exit when found;
  end loop;
  return null;
end $$;
create trigger advance_lane after update of status on deliveries
  for each row when (old.status = 'pending' and new.status <> 'pending' and not old.behind) execute function advance_lane();

create index deliveries_heads on deliveries (subscription_id, run_at, seq) where status = 'pending' and not behind;
drop index deliveries_due;
-- Pending ones of a subscription, newest first. Lists alone name `event_at`: what looks at a lane must not be planned by this index, where the
-- planner has not heard yet that much is pending.
create index deliveries_pending on deliveries (subscription_id, id) where status = 'pending' and event_at > '-infinity';
-- What may grow too old.
create index deliveries_news on deliveries (event_at) where status = 'pending' and event_type <> 'call.ended';
