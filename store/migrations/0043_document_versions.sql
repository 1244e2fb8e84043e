-- Texts of call scripts that another text has taken the place of. The one in use stands with its document.
create table document_versions (
  account_id text not null,
  document_id text not null,
  version integer not null,
  content text not null,
  -- When it was written, which is before the next one was.
  saved_at timestamptz not null,
  primary key (document_id, version),
  foreign key (account_id, document_id) references documents (account_id, id) on delete cascade
);
