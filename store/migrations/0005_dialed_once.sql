-- When somebody was called for an outbound call: written once, before the first INVITE, so that no heir of the call calls again.
alter table calls add column dialed_at timestamptz;
