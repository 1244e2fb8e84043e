/** Owns how what somebody sent becomes text and passages, by its type. Runs where it may take its time: in the reading thread. */
import type { DocumentType, WrittenType } from '../../model/document.ts'
import { storableText } from '../../model/json.ts'
import type { PassageText } from '../../store/passages.ts'
import { cutPassages } from './cut-passages.ts'
import { decodeText } from './decode-text.ts'
import { declaredEncoding, readHtml } from './read-html.ts'
import { Unreadable } from './unreadable.ts'

/** Characters: more than 2,000 pages. */
const maxText = 5_000_000

export type Source =
  | { readonly kind: 'file'; readonly type: DocumentType; readonly bytes: Uint8Array<ArrayBuffer> }
  /** What was read before, or written. Of what came from a file it is Markdown. */
  | { readonly kind: 'text'; readonly type: DocumentType; readonly text: string }

export type ReadDocument = { readonly text: string; readonly passages: readonly PassageText[] }

/** Throws Unreadable. */
export async function readDocument(source: Source): Promise<ReadDocument> {
  const text = source.kind === 'text' ? source.text : storableText(await textOf(source.type, source.bytes), Infinity)
  if (text.trim() === '') throw new Unreadable('empty')
  if (text.length > maxText) throw new Unreadable('too_long')
  return { text, passages: cutPassages(text, writtenAs(source.type)) }
}

const writtenAs = (type: DocumentType): WrittenType => (type === 'txt' ? 'txt' : 'mdoc')

/** Readers of formats are loaded when the first file of theirs comes. */
async function textOf(type: DocumentType, bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  if (bytes.length === 0) throw new Unreadable('empty')
  switch (type) {
    case 'txt':
    case 'mdoc':
      return decodeText(bytes)
    case 'html':
      return readHtml(decodeText(bytes, declaredEncoding(new TextDecoder('latin1').decode(bytes.subarray(0, 1024)))))
    case 'docx':
      return (await import('./read-docx.ts')).readDocx(bytes)
    case 'pdf':
      return (await import('./read-pdf.ts')).readPdf(bytes)
  }
}
