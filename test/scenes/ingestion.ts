/** Owns documents on a real database, with everything behind them that reads and searches them. */
import type { Test } from 'tap'
import { createIngestion } from '../../actors/documents/ingestion.ts'
import { lexicalEmbedder } from '../../actors/documents/lexical-embedder.ts'
import { openScriptCheck } from '../../app/script-check.ts'
import type { DocumentRequest } from '../../model/document.ts'
import type { Embedder } from '../../model/knowledge.ts'
import { findDocument, uploadDocument, writeDocument } from '../../store/documents.ts'
import { createKnowledge } from '../../store/knowledge.ts'
import type { Sql } from '../../store/sql.ts'
import { typeOfFile, type UploadRequest } from '../../model/document.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createInlineReader } from '../fake/inline-reader.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createTenant, newId } from './tenant.ts'

type Options = {
  readonly embedder?: Embedder
  readonly language?: string
  readonly inThread?: boolean
}

/** Without a worker's documents of its own. `ingest` does what waits, as one process of several would. */
export async function openKnowledge(t: Test, sql: Sql, options: Options = {}) {
  const { embedder = lexicalEmbedder, language } = options
  const clock = createHandClock()
  const log = createQuietLog()
  const tenant = await createTenant(sql, { slug: newId() })
  const { accountId, workerId } = tenant
  if (language !== undefined) await sql`update workers set language = ${language} where id = ${workerId}`
  const nodeId = newId<'node'>()
  const reader = options.inThread === true ? {} : { reader: createInlineReader() }
  const ingestion = createIngestion({
    sql,
    clock,
    log,
    nodeId,
    newId,
    embedder,
    checkScript: openScriptCheck,
    ...reader,
  })
  t.teardown(() => ingestion.close())
  const knowledge = createKnowledge({ sql, embedder, maxBytes: 16_000_000, log })
  const settings = { workerIds: [workerId] }
  const checkScript = await openScriptCheck()
  return {
    ...tenant,
    sql,
    clock,
    log,
    nodeId,
    ingestion,
    knowledge,
    ingest: () => ingestion.idle(),
    write: (text: string, over: Partial<DocumentRequest> = {}) =>
      writeDocument(sql, {
        accountId,
        request: { title: 'Handbook', text, ...settings, ...over },
        checkScript,
        newId,
        now: clock.now(),
      }),
    upload(fileName: string, bytes: Uint8Array<ArrayBuffer>, over: UploadRequest = {}) {
      const type = typeOfFile(fileName)
      if (type === null) throw new Error(`no type for ${fileName}`)
      const wanted = { accountId, request: { title: fileName, ...settings, ...over }, newId, now: clock.now() }
      return uploadDocument(sql, { fileName, type, bytes }, wanted)
    },
    find: async (documentId: Parameters<typeof findDocument>[2]) => {
      const found = await findDocument(sql, accountId, documentId)
      if (!found) throw new Error('the document is gone')
      return found
    },
    search: (query: string, limit = 5) => knowledge.search({ accountId, workerId, query, limit }),
  }
}
