/** Owns the reading thread: one document after another, its passages handed over in pieces. Started by reader.ts. */
import { setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import type { ReadingReply, ReadingRequest } from './reader.ts'
import { lexicalVector } from './lexical-embedder.ts'
import { readDocument, type ReadDocument } from './read-document.ts'
import { Unreadable } from './unreadable.ts'

/** Nobody waits for it on a telephone. */
const niceness = 10
const passagesAtOnce = 200

function main(): void {
  const port = parentPort
  if (port === null) throw new Error('runs in a worker thread only')
  setPriority(niceness)
  const reply = (message: ReadingReply, transfer: ArrayBuffer[] = []): void => port.postMessage(message, transfer)
  let open: (ReadDocument & { readonly title: string; readonly isEmbedded: boolean; at: number }) | null = null

  const begin = async ({ source, title, isEmbedded }: ReadingRequest & { type: 'read' }): Promise<void> => {
    open = null
    try {
      const read = await readDocument(source)
      open = { ...read, title, isEmbedded, at: 0 }
      reply({ type: 'read', text: source.kind === 'file' ? read.text : null })
    } catch (error) {
      // A parser that stumbles over a file says as many different things as there are broken files.
      reply({
        type: 'unreadable',
        reason: error instanceof Unreadable ? error.reason : 'unreadable',
        details: String(error),
      })
    }
  }
  const next = (): void => {
    const passages = open?.passages.slice(open.at, open.at + passagesAtOnce) ?? []
    if (open) open.at += passages.length
    const title = open?.title ?? ''
    const isEmbedded = open?.isEmbedded === true
    const vectors = isEmbedded
      ? passages.map(({ heading, text }) => lexicalVector(`${title}\n${heading}\n${text}`))
      : null
    reply({ type: 'passages', passages, vectors }, vectors?.map(({ buffer }) => buffer) ?? [])
  }
  port.on('message', (request: ReadingRequest) => {
    if (request.type === 'read') void begin(request)
    else next()
  })
}

main()
