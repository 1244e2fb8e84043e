/** Owns how a Word document becomes Markdown: by mammoth, out of an archive that is opened within bounds. Nothing outside of it is looked at. */
import { Buffer } from 'node:buffer'
import mammoth from 'mammoth'
import { openZip } from './bounded-zip.ts'
import { isOle, isZip } from './decode-text.ts'
import { readHtml } from './read-html.ts'
import { Unreadable } from './unreadable.ts'

/** Bytes of all parts that are read, inflated: more than a thousand pages. */
const maxInflated = 64 * 1024 * 1024
const mainPart = '[Content_Types].xml'

/** Throws Unreadable. */
export async function readDocx(bytes: Uint8Array): Promise<string> {
  // Word encrypts a document by putting it into an OLE container ([MS-OFFCRYPTO] 2.3).
  if (isOle(bytes)) throw new Unreadable(isEncryptedOle(bytes) ? 'encrypted' : 'wrong_type')
  if (!isZip(bytes)) throw new Unreadable('wrong_type')
  const zip = openZip(bytes, maxInflated)
  if (!zip.has(mainPart)) throw new Unreadable('wrong_type')
  // Not its declared input: any other would be inflated by mammoth itself, without a bound.
  const input = { file: archiveOf(zip) } as unknown as Parameters<typeof mammoth.convertToHtml>[0]
  const convertImage = mammoth.images.imgElement(() => Promise.resolve({ src: '' }))
  try {
    const { value } = await mammoth.convertToHtml(input, {
      convertImage,
      externalFileAccess: false,
      includeEmbeddedStyleMap: false,
    })
    return readHtml(value)
  } catch (error) {
    if (error instanceof Unreadable) throw error
    throw new Unreadable('unreadable', error)
  }
}

/** As mammoth asks for parts. */
function archiveOf(zip: ReturnType<typeof openZip>) {
  return {
    exists: (name: string) => zip.has(name),
    async read(name: string, encoding?: string): Promise<Uint8Array | string> {
      const part = zip.read(name)
      if (encoding === undefined) return part
      if (encoding === 'base64') return Buffer.from(part).toString('base64')
      const xml = new TextDecoder(encoding).decode(part)
      // No part of a document has one (ECMA-376 part 2, 8.2.5): it names entities, or something to fetch.
      if (/<!(?:DOCTYPE|ENTITY)/i.test(xml)) throw new Unreadable('not_allowed')
      return xml
    },
  }
}

/** The names of its streams are UTF-16. */
const isEncryptedOle = (bytes: Uint8Array): boolean =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes(Buffer.from('EncryptedPackage', 'utf16le'))
