-- The link of a call or a refusal to its trunk is kept by who writes it (store/trunks.ts, store/telephony.ts). As foreign keys they made every
-- step of a call that writes its row twice lock the trunk while it held the call, and who deleted the trunk lock the call while it held the
-- trunk: a deadlock.
alter table calls drop constraint calls_trunk_id_fkey;
alter table call_refusals drop constraint call_refusals_trunk_id_fkey;
