-- How well sound got through, as the call's leg told when it ended (LegQuality); null before that, and when no leg told.
alter table calls add column quality jsonb;
