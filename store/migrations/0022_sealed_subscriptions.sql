-- Headers of a subscription rest sealed: the service seals those that are here when it starts, and leaves `headers` empty.
alter table webhook_subscriptions add column sealed_headers text;
-- The signing secret before the last change, and until when it signs too.
alter table webhook_subscriptions add column former_secret text;
alter table webhook_subscriptions add column former_secret_until timestamptz;
