-- Further parts of recordings, of calls that went on by another leg: <account>/<call>.<ms from the answer>.wav. Few calls have any.
create index recordings_of_parts on recordings (call_id) where key like '%.%.wav';
