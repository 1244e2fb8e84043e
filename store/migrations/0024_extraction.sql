-- Where the values of a call were said, by the key of the dimension: {turn, quote, source}; and what a model wrote about the call. Both are personal:
-- words of the caller, and words about them. Null for calls of before they were kept.
alter table calls add column evidence jsonb, add column summary text;
