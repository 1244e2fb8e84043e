-- A socket may die before its client reads the new resume token: the one it presented stays good until the new one is used.
alter table web_sessions add column previous_resume_hash bytea unique;
