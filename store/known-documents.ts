/** Owns which documents a worker's searches look at: its own, active, ingested, and no call scripts. */
import { scriptTags } from '../model/document.ts'
import type { AccountId, WorkerId } from '../model/ids.ts'
import type { Fragment, Sql } from './sql.ts'

/** A select of them, for a statement to be made of. */
export const knownDocuments = (sql: Sql, { accountId, workerId }: { accountId: AccountId; workerId: WorkerId }) =>
  knownDocumentsOf(sql, { accountId: sql`${accountId}::text`, workerId: sql`${workerId}::text` })

/** The same of values or columns. */
export const knownDocumentsOf = (
  sql: Sql,
  { accountId, workerId }: Readonly<Record<'accountId' | 'workerId', Fragment>>,
) => sql`
  select id, title, revision, passage_count, dictionary, embedder from documents
  where account_id = ${accountId} and is_active and revision is not null and not tag_keys && ${[...scriptTags]}::text[]
    and id in (select document_id from document_workers where account_id = ${accountId} and worker_id = ${workerId})`
