-- Of a call: `paused` or `off` once its recording is, `on` after a pause. Null: recorded as any other, or of before it could be told.
alter table calls add column recording_state text check (recording_state in ('on', 'paused', 'off'));
-- What the caller of a call was told first: milliseconds of it that were played, and whether it was heard to its end. Null: nothing was to be told.
alter table calls add column disclosure jsonb;
