-- Rows that are written again and again leave their former versions in the indexes that claims walk, until they are vacuumed: with the defaults a fifth
-- of a table first. Statistics of queues are old before a tenth of a large table has changed.
alter table deliveries set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000, autovacuum_vacuum_cost_delay = 1);
alter table calls set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000);
alter table jobs set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000);
alter table nodes set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
-- Logs are written once, and go in their order.
alter table delivery_attempts set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
alter table call_events set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
