-- What the INVITE of an inbound phone call said besides its numbers (SipFacts); null for other calls, and for those of before.
alter table calls add column sip jsonb;
