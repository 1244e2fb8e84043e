-- Where an inbound phone call came from, as limits count addresses: calls that nobody acknowledges are counted by it. Null: unknown.
alter table calls add column arrived_from text;
