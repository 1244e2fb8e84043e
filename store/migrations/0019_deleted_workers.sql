-- A worker that was deleted keeps its row for the calls that it had: nothing else finds it.
alter table workers add column deleted_at timestamptz;
create index on workers (deleted_at) where deleted_at is not null;
