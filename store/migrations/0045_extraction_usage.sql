-- What was used to read the finished talk (EngineUsage, a list), over all runs of it; null: nothing was counted.
alter table calls add column extraction_usage jsonb;
