-- A node that cannot be heard says so here: silence alone does not mean then that it is dead.
alter table nodes add column off_bus boolean not null default false;
