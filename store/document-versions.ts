/** Owns the texts that call scripts had before: each that another one takes the place of is kept, the newest fifty of a script. */
import type { DocumentVersionFacts } from '../model/document-version.ts'
import type { AccountId, DocumentId } from '../model/ids.ts'
import type { Sql, Transaction } from './sql.ts'

const mostKept = 50

type Former = {
  readonly accountId: AccountId
  readonly documentId: DocumentId
  readonly content: string
  /** Ms since the epoch. */
  readonly savedAt: number
}

/** In the transaction that holds the document and gives it another text. */
export async function keepVersion(tx: Transaction, { accountId, documentId, content, savedAt }: Former): Promise<void> {
  const [kept] = await tx<{ version: number }[]>`
    insert into document_versions (account_id, document_id, version, content, saved_at)
    select ${accountId}::text, ${documentId}::text, coalesce(max(version), 0) + 1, ${content}::text, ${savedAt}::timestamptz
    from document_versions where document_id = ${documentId}
    returning version`
  await tx`
    delete from document_versions where document_id = ${documentId} and version <= ${(kept?.version ?? 0) - mostKept}`
}

/** Newest first; none too for a document of another account. */
export function listVersions(
  sql: Sql | Transaction,
  accountId: AccountId,
  documentId: DocumentId,
): Promise<Omit<DocumentVersionFacts, 'content'>[]> {
  return sql<Omit<DocumentVersionFacts, 'content'>[]>`
    select version, saved_at, length(content) as characters from document_versions
    where account_id = ${accountId} and document_id = ${documentId} order by version desc`
}

export async function findVersion(
  sql: Sql | Transaction,
  accountId: AccountId,
  documentId: DocumentId,
  version: number,
): Promise<DocumentVersionFacts | null> {
  const [row] = await sql<DocumentVersionFacts[]>`
    select version, saved_at, length(content) as characters, content from document_versions
    where account_id = ${accountId} and document_id = ${documentId} and version = ${version}`
  return row ?? null
}
