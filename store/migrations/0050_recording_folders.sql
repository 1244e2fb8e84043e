-- Folders that recordings were written to. Where there are several, a call whose browser moved from one machine to another may have left a part in each.
create table recording_folders (id text primary key);
insert into recording_folders select distinct folder from recordings where folder <> '';
