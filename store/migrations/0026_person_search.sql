-- Persons are found by parts of words in any spelling of letters and numbers. docs/design/person-search.md "How it is found".

-- How a text is compared: small letters without accents. settle_person_search writes it anew where `unaccent` may be had.
create function person_plain(written text) returns text
  language sql immutable parallel safe strict as 'select lower($1)';

-- Single letters and pairs of neighbours, as keys of this account alone: an index of them finds words too short for trigrams, and all words where
-- there is no pg_trgm. The pairs from the first letter on, then those from the second; store/person-search.ts knows how a key looks. To compute them for
-- a row is said to be dear, so that the index is asked.
create function person_pairs(account text, plain text) returns text[]
  language sql immutable parallel safe strict cost 10000 as $$
  select string_to_array(
    tail || regexp_replace(plain, '(.)', '\1' || next, 'g') || next || regexp_replace(plain, '(..)', '\1' || next, 'g') || next
      || regexp_replace(substr(plain, 2), '(..)', '\1' || next, 'g'), chr(1))
  from (select right(account, 12) as tail, chr(1) || right(account, 12) as next) as keys
$$;

-- Makes what the search needs of extensions and indexes, as far as this role may, and tells what it may not: null for nothing. It is run here and
-- at each start, so that a right that is given later is used from the next start on.
create function settle_person_search() returns text language plpgsql as $$
declare
  extension text;
  lacking text[] := '{}';
  composed text := case when getdatabaseencoding() = 'UTF8' then 'normalize($1, NFKC)' else '$1' end;
  place text;
  body text;
begin
  -- The lock of migrations: of two processes that start at once one does it.
  perform pg_advisory_xact_lock(7275539);
  foreach extension in array array['unaccent', 'pg_trgm', 'btree_gin'] loop
    begin
      execute format('create extension if not exists %I', extension);
    exception when others then
      lacking := lacking || format('%s (%s)', extension, sqlerrm);
    end;
  end loop;

  select nspname into place from pg_extension join pg_namespace on pg_namespace.oid = extnamespace where extname = 'unaccent';
  -- A dictionary could be changed, so that unaccent is not immutable by itself; nobody changes this one.
  body := case when place is not null
    then format('select lower(%I.unaccent(%L::regdictionary, %s))', place, format('%I.unaccent', place), composed)
    when composed = '$1' then 'select lower($1)'
    else $text$select replace(lower(translate(regexp_replace(normalize($1, NFKD), '[\u0300-\u036f]', '', 'g'), 'ØøŁłĐđı', 'OoLlDdi')), 'ß', 'ss')$text$
  end;
  if body <> (select prosrc from pg_proc where proname = 'person_plain' and pronamespace = current_schema()::regnamespace) then
    execute format('create or replace function person_plain(written text) returns text language sql immutable parallel safe strict as %L', body);
    if exists (select from pg_attribute where attrelid = 'persons'::regclass and attname = 'search_text' and not attisdropped) then
      update persons set first_name = first_name;
    end if;
  end if;

  select nspname into place from pg_extension join pg_namespace on pg_namespace.oid = extnamespace where extname = 'pg_trgm';
  if place is not null and to_regclass('persons_by_trigrams') is null
    and exists (select from pg_attribute where attrelid = 'persons'::regclass and attname = 'search_text' and not attisdropped) then
    -- With the account in front, the persons of others are not even looked at.
    execute format('create index persons_by_trigrams on persons using gin (%s search_text %I.gin_trgm_ops) with (gin_pending_list_limit = 256)',
      case when exists (select from pg_extension where extname = 'btree_gin') then 'account_id,' else '' end, place);
  end if;
  return nullif(array_to_string(lacking, '; '), '');
end
$$;

select settle_person_search();

-- Personal, like what it is made of: it goes with the row.
alter table persons add column search_text text generated always as (
  person_plain(first_name || ' ' || last_name || ' ' || coalesce(email, '') || ' ' || coalesce(phone_number, '') || ' ' || coalesce(company_name, ''))
) stored;
create index persons_by_pairs on persons using gin (person_pairs(account_id, search_text)) with (gin_pending_list_limit = 256);

select settle_person_search();

-- Numbers of before are brought into the one form of E.164 by the service, which knows the numbering plans, when it starts. New ones have it.
alter table persons add column number_unread boolean not null default true;
alter table persons alter column number_unread set default false;
create index persons_number_unread on persons (id) where number_unread and phone_number is not null;
