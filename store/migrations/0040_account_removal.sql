-- An account that is deleted goes by and by as well, its calls first.
alter table removals drop constraint removals_kind_check;
alter table removals add constraint removals_kind_check check (kind in ('subscription', 'trunk', 'person', 'account'));
