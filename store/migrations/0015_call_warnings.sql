-- What a call was asked for and does not do (CallWarning), each once.
alter table calls add column warnings jsonb not null default '[]';
