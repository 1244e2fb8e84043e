-- Who ended a call (EndedBy), and the SIP status or Q.850 cause that the other side gave; null for calls of before it was told.
alter table calls add column ended_by text, add column end_cause text;
