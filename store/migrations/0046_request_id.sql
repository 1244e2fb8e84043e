-- The x-request-id of the request of REST that placed the call; null: none did, or before it was kept.
alter table calls add column request_id text;
