-- The name that led to an address, and when it did last; null for what the settings name as an address.
alter table trunk_addresses add column name text;
alter table trunk_addresses add column seen_at timestamptz;
