-- A subscription's timeout is any number of milliseconds, and answered as it was given.
alter table webhook_subscriptions alter column timeout_ms type double precision;
