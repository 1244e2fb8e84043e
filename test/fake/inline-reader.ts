/** Owns a reader without a thread of its own, for tests that are about what becomes of what was read. */
import { lexicalVector } from '../../actors/documents/lexical-embedder.ts'
import { readDocument } from '../../actors/documents/read-document.ts'
import type { Reader } from '../../actors/documents/reader.ts'

export function createInlineReader(): Reader {
  let rest: Awaited<ReturnType<Reader['next']>>['passages'] = []
  let [title, isEmbedded] = ['', false]
  return {
    async read(source, ofTitle, embeds) {
      ;[title, isEmbedded, rest] = [ofTitle, embeds, []]
      const read = await readDocument(source)
      rest = read.passages
      return source.kind === 'file' ? read.text : null
    },
    async next() {
      const passages = rest
      rest = []
      const vectors = passages.map(({ heading, text }) => lexicalVector(`${title}\n${heading}\n${text}`))
      return { type: 'passages', passages, vectors: isEmbedded ? vectors : null }
    },
    close: async () => {},
  }
}
