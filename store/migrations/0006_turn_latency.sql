-- How long the caller waited for an answer of the agent, stage by stage (TurnLatency); null for turns that answer nobody.
alter table transcript_turns add column latency jsonb;
