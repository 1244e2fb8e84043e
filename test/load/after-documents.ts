/** Owns `npm run bench after documents`: how many megabytes of each format are ingested in a second, by the thread, into the database. */
import { createIngestion } from '../../actors/documents/ingestion.ts'
import { lexicalEmbedder } from '../../actors/documents/lexical-embedder.ts'
import { systemClock } from '../../app/clock.ts'
import { uploadDocument } from '../../store/documents.ts'
import type { DocumentType } from '../../model/document.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { docxOf, ownBytes, pdfOf, wordXml } from '../scenes/document-files.ts'
import { createTenant, newId } from '../scenes/tenant.ts'
import { createProse } from './prose.ts'
import { printTable } from './table.ts'

const megabyte = 1_000_000
const paragraphs = 4_000

export async function benchDocuments(): Promise<void> {
  const closing = new AsyncDisposableStack()
  const { sql } = await openTestDatabase({ teardown: (close) => closing.defer(close) })
  const { accountId, workerId } = await createTenant(sql)
  const deps = { sql, clock: systemClock, log: createQuietLog(), nodeId: newId<'node'>(), newId }
  const ingestion = createIngestion({ ...deps, embedder: lexicalEmbedder, checkScript: async () => () => [] })
  closing.defer(() => ingestion.close())
  const rows: Record<string, string>[] = []
  for (const [type, bytes] of Object.entries(filesOf()) as [DocumentType, Uint8Array<ArrayBuffer>][]) {
    const size = bytes.length
    const request = { title: type, workerIds: [workerId] }
    const { id } = await uploadDocument(
      sql,
      { fileName: `a.${type}`, type, bytes },
      { accountId, request, newId, now: Date.now() },
    )
    const began = performance.now()
    await ingestion.idle()
    const seconds = (performance.now() - began) / 1000
    const [read] = await sql<{ status: string; characters: number; passageCount: number }[]>`
      select status, length(content) as characters, passage_count from documents where id = ${id}`
    const speed = (count: number) => (count / megabyte / seconds).toFixed(2)
    const text = read?.characters ?? 0
    rows.push({
      format: type,
      status: read?.status ?? '',
      'MB of file': (size / megabyte).toFixed(2),
      'file MB/s': speed(size),
      'text MB/s': speed(text),
      passages: String(read?.passageCount ?? 0),
    })
  }
  printTable(rows)
  await closing.disposeAsync()
}

function filesOf(): Record<DocumentType, Uint8Array<ArrayBuffer>> {
  const prose = createProse(7)
  const texts = Array.from({ length: paragraphs }, () => prose.paragraph())
  const encode = (text: string) => ownBytes(new TextEncoder().encode(text))
  const headed = texts.map((text, at) => (at % 10 === 0 ? `## Part ${at}\n\n${text}` : text))
  const pages = Array.from({ length: Math.ceil(texts.length / 8) }, (_, page) =>
    texts.slice(page * 8, page * 8 + 8).flatMap((text) =>
      (text.match(/.{1,90}(?:\s|$)/g) ?? []).map((line, at) => ({
        text: line.trim(),
        size: 9,
        gap: at === 0 ? 8 : 0,
      })),
    ),
  )
  return {
    txt: encode(texts.join('\n\n')),
    mdoc: encode(headed.join('\n\n')),
    html: encode(`<html><body>${texts.map((text) => `<p>${text}</p>`).join('\n')}</body></html>`),
    docx: docxOf(wordXml(texts.map((text) => ({ text })))),
    pdf: pdfOf(pages),
  }
}
