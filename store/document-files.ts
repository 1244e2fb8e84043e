/** Owns uploaded files until they have been read: in pieces, so that no statement takes long. */
import { Buffer } from 'node:buffer'
import type { AccountId, DocumentId } from '../model/ids.ts'
import type { Sql, Transaction } from './sql.ts'

const pieceBytes = 512 * 1024

export async function writeFile(
  tx: Transaction,
  { accountId, documentId }: { readonly accountId: AccountId; readonly documentId: DocumentId },
  bytes: Uint8Array<ArrayBuffer>,
): Promise<void> {
  for (let place = 0; place * pieceBytes < bytes.length; place += 1) {
    const piece = Buffer.from(bytes.subarray(place * pieceBytes, (place + 1) * pieceBytes))
    await tx`insert into document_files ${tx({ documentId, accountId, place, bytes: piece })}`
  }
}

export async function readFile(sql: Sql, documentId: DocumentId): Promise<Uint8Array<ArrayBuffer>> {
  const [size] = await sql<{ bytes: number; pieces: number }[]>`
    select coalesce(sum(length(bytes)), 0)::int as bytes, count(*)::int as pieces from document_files where document_id = ${documentId}`
  const whole = new Uint8Array(size?.bytes ?? 0)
  let at = 0
  for (let place = 0; place < (size?.pieces ?? 0); place += 1) {
    const [row] = await sql<{ bytes: Uint8Array }[]>`
      select bytes from document_files where document_id = ${documentId} and place = ${place}`
    // Its document was deleted meanwhile.
    if (row === undefined) break
    whole.set(row.bytes, at)
    at += row.bytes.length
  }
  return whole.subarray(0, at)
}
