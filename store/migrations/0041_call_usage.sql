-- What a call has used, from the moment that its end is stored (CallUsage); null before, and for calls of before it was counted.
alter table calls add column usage jsonb;
