-- Of an inbound phone call: the carrier proved that the caller's number is the caller's. Null for other calls, and for those of before it was kept.
alter table calls add column caller_verified boolean;
