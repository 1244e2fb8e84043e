-- Passages: what searches look at. Those of one revision are one document as it was ingested; the revision that a document names is searched, and
-- replaced by a newer one when that is complete. They hold the texts of documents, with whatever personal data is in those, and go with the document.

create sequence document_revisions;
-- What is searched; null: nothing yet, or nothing for searches (a call script).
alter table documents add column revision bigint;
alter table documents add column passage_count integer not null default 0;
-- Of its passages: the name of a text search configuration of Postgres.
alter table documents add column dictionary text;
-- By whose vectors; null: without any.
alter table documents add column embedder text;
alter table documents add column failed_reason text;

-- The dictionary is a parameter and not its type, which no upgrade of Postgres takes along in a table. `a:` and the account narrow the index to
-- one account: no word of a text reads like that.
create function passage_lexemes(account text, dictionary text, title text, heading text, body text) returns tsvector
language sql immutable parallel safe as $$
  select array_to_tsvector(array['a:' || account])
    || setweight(to_tsvector(('pg_catalog.' || dictionary)::regconfig, title), 'C')
    || setweight(to_tsvector(('pg_catalog.' || dictionary)::regconfig, heading), 'B')
    || setweight(to_tsvector(('pg_catalog.' || dictionary)::regconfig, body), 'A')
$$;

create table passages (
  revision bigint not null,
  place integer not null,
  account_id text not null,
  document_id text not null,
  dictionary text not null,
  title text not null,
  -- Headings that the text stands below, one a line.
  heading text not null,
  text text not null,
  -- One signed byte for each part.
  vector bytea,
  lexemes tsvector generated always as (passage_lexemes(account_id, dictionary, title, heading, text)) stored,
  primary key (revision, place),
  foreign key (account_id, document_id) references documents (account_id, id) on delete cascade
);
create index on passages (document_id);
create index passages_lexemes on passages using gin (lexemes);

-- Documents that wait to be read. The row goes with its work; a claim whose node died runs out.
create table document_jobs (
  document_id text primary key references documents on delete cascade,
  account_id text not null,
  run_at timestamptz not null,
  attempts integer not null default 0,
  claim text,
  claimed_by text,
  claimed_until timestamptz
);
create index on document_jobs (run_at);

-- An uploaded file in pieces, until its text has been read or cannot be.
create table document_files (
  document_id text not null references documents on delete cascade,
  place integer not null,
  account_id text not null,
  bytes bytea not null,
  primary key (document_id, place)
);
alter table document_files alter column bytes set storage external;

-- What is here is searched at once, cut as searches cut it until now; then it is ingested as everything is.
update documents set revision = nextval('document_revisions')
where status = 'completed' and not tag_keys && array['inbound_call_script', 'outbound_call_script'];

insert into passages (revision, place, account_id, document_id, dictionary, title, heading, text)
with known as (
  select id, account_id, revision, title, content, coalesce((
    select dictionary from document_workers
    join workers on workers.id = worker_id
    join (values ('en', 'english'), ('de', 'german'), ('fr', 'french'), ('es', 'spanish'), ('it', 'italian'), ('nl', 'dutch'),
      ('pt', 'portuguese'), ('sv', 'swedish'), ('da', 'danish'), ('fi', 'finnish'), ('nb', 'norwegian'), ('no', 'norwegian'),
      ('ru', 'russian'), ('ro', 'romanian'), ('hu', 'hungarian'), ('tr', 'turkish')) as names (code, dictionary)
      on code = lower(split_part(workers.language, '-', 1))
    where document_id = documents.id order by workers.created_at, workers.id limit 1), 'simple') as dictionary
  from documents where revision is not null
), paragraphs as materialized (
  select id, place, paragraph, coalesce(lag(length(paragraph)) over (partition by id order by place) <= 80, false) as headed
  from known, regexp_split_to_table(content, '\r?\n[ \t\r]*\n\s*') with ordinality as parts (paragraph, place)
), grouped as (
  select *, count(*) filter (where not headed) over (partition by id order by place) as part from paragraphs
), parts as materialized (
  select id, part, string_agg(paragraph, E'\n' order by place) as text from grouped group by id, part
), blocks as materialized (
  select id, part, block, substr(text, block + 1, 22400) as text
  from parts, generate_series(0, length(text) - 1, 22400) as block
), cuts as materialized (
  select id, part, block, cut, trim(E' \t\r\n' from substr(text, start + 1, stop - start)) as text
  from blocks, generate_series(0, length(text) - 1, 1120) as cut, lateral (
    select cut + case when cut = 0 then 0 else regexp_instr(substr(text, cut + 1, 80), '\s') end as start,
      cut + 1120 + regexp_instr(substr(text, cut + 1121, 80), '\s') as stop) as ends
)
select revision, row_number() over (partition by known.id order by part, block, cut) - 1, account_id, known.id, dictionary, title, '', cuts.text
from cuts join known on known.id = cuts.id where cuts.text <> '';

update documents set passage_count = counted.passages, dictionary = counted.dictionary
from (select document_id, count(*) as passages, min(dictionary) as dictionary from passages group by document_id) as counted where counted.document_id = documents.id;

insert into document_jobs (document_id, account_id, run_at) select id, account_id, now() from documents where revision is not null;
