/** Owns files as people upload them, made here byte by byte: Word documents, PDFs, archives, and what only claims to be one. */
import { crc32, deflateRawSync } from 'node:zlib'

const bytesOf = (content: string | Uint8Array): Uint8Array =>
  typeof content === 'string' ? new TextEncoder().encode(content) : content

/** A zip archive of these files, in their order. */
export function zipOf(files: Readonly<Record<string, string | Uint8Array>>): Uint8Array<ArrayBuffer> {
  const locals: Buffer[] = []
  const directory: Buffer[] = []
  let at = 0
  for (const [name, content] of Object.entries(files)) {
    const plain = bytesOf(content)
    const packed = deflateRawSync(plain)
    const head = Buffer.alloc(26)
    head.writeUInt16LE(20, 0)
    head.writeUInt16LE(8, 4)
    head.writeUInt32LE(crc32(plain), 10)
    head.writeUInt32LE(packed.length, 14)
    head.writeUInt32LE(plain.length, 18)
    head.writeUInt16LE(Buffer.byteLength(name), 22)
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), head, Buffer.from(name), packed])
    const offset = Buffer.alloc(14)
    offset.writeUInt32LE(at, 10)
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02'), Buffer.from([20, 0]), head, offset, Buffer.from(name)]))
    locals.push(local)
    at += local.length
  }
  const whole = Buffer.concat(directory)
  const end = Buffer.alloc(18)
  end.writeUInt16LE(directory.length, 4)
  end.writeUInt16LE(directory.length, 6)
  end.writeUInt32LE(whole.length, 8)
  end.writeUInt32LE(at, 12)
  return ownBytes(Buffer.concat([...locals, whole, Buffer.from('PK\x05\x06'), end]))
}

/** Not the pool of Buffer: such bytes may be given away to a thread. */
export const ownBytes = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(bytes)

type Paragraph = { readonly text: string; readonly style?: 'Heading1' | 'Heading2' }

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

export const wordXml = (paragraphs: readonly Paragraph[], prolog = ''): string =>
  `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>${prolog}<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>${paragraphs
    .map(
      ({ text, style }) =>
        `<w:p>${style ? `<w:pPr><w:pStyle w:val="${style}"/></w:pPr>` : ''}<w:r><w:t xml:space="preserve">${text.startsWith('&') ? text : escaped(text)}</w:t></w:r></w:p>`,
    )
    .join('')}</w:body></w:document>`

/** What Word writes, as far as a reader asks for it (ECMA-376). */
export function docxOf(
  document: string,
  more: Readonly<Record<string, string | Uint8Array>> = {},
): Uint8Array<ArrayBuffer> {
  const types = 'http://schemas.openxmlformats.org/package/2006/content-types'
  const relations = 'http://schemas.openxmlformats.org/package/2006/relationships'
  const office = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument'
  return zipOf({
    '[Content_Types].xml': `<Types xmlns="${types}"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>`,
    '_rels/.rels': `<Relationships xmlns="${relations}"><Relationship Id="rId1" Type="${office}" Target="word/document.xml"/></Relationships>`,
    'word/document.xml': document,
    'word/styles.xml': `<w:styles xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style><w:style w:type="paragraph" w:styleId="Heading2"><w:name w:val="heading 2"/></w:style></w:styles>`,
    ...more,
  })
}

export type PdfLine = { readonly text: string; readonly size?: number; readonly gap?: number }

/** Pages of lines in Helvetica (ISO 32000-1). `trailer`: what stands in it besides. */
export function pdfOf(
  pages: readonly (readonly PdfLine[])[],
  { trailer = '', objects = [] as readonly string[] } = {},
): Uint8Array<ArrayBuffer> {
  const body: string[] = []
  const first = 4
  const kids = pages.map((_, at) => `${first + 2 * at} 0 R`)
  body.push('<< /Type /Catalog /Pages 2 0 R >>')
  body.push(`<< /Type /Pages /Kids [${kids.join(' ')}] /Count ${pages.length} >>`)
  body.push('<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>')
  for (const [at, lines] of pages.entries()) {
    const content = contentOf(lines)
    body.push(
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents ${first + 2 * at + 1} 0 R >>`,
    )
    body.push(`<< /Length ${content.length} >>\nstream\n${content}\nendstream`)
  }
  body.push(...objects)
  let text = '%PDF-1.7\n'
  const offsets = body.map((object, at) => {
    const offset = text.length
    text += `${at + 1} 0 obj\n${object}\nendobj\n`
    return offset
  })
  const entries = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('')
  text += `xref\n0 ${body.length + 1}\n0000000000 65535 f \n${entries}trailer\n<< /Size ${body.length + 1} /Root 1 0 R ${trailer} >>\nstartxref\n${text.length}\n%%EOF\n`
  return ownBytes(Buffer.from(text, 'latin1'))
}

/** With a password that nobody told us (ISO 32000-1, 7.6.3). */
export const lockedPdf = (): Uint8Array<ArrayBuffer> => {
  const zeros = '<' + '5a'.repeat(32) + '>'
  return pdfOf([[{ text: 'A secret.' }]], {
    trailer: `/Encrypt 6 0 R /ID [<${'01'.repeat(16)}> <${'01'.repeat(16)}>]`,
    objects: [`<< /Filter /Standard /V 1 /R 2 /O ${zeros} /U ${zeros} /P -44 >>`],
  })
}

function contentOf(lines: readonly PdfLine[]): string {
  let y = 800
  const shown = lines.map(({ text, size = 11, gap = 0 }) => {
    y -= size * 1.2 + gap
    return `BT /F1 ${size} Tf 1 0 0 1 60 ${y.toFixed(2)} Tm (${text.replace(/[()\\]/g, '\\$&')}) Tj ET`
  })
  return shown.join('\n')
}

/** A form as browsers send it (RFC 7578). */
export function formOf(
  fields: readonly (readonly [name: string, value: string])[],
  file: { readonly name: string; readonly bytes: Uint8Array } | null,
  boundary = 'a-boundary-of-this-test',
): { readonly body: Uint8Array<ArrayBuffer>; readonly headers: Record<string, string> } {
  const parts = fields.map(([name, value]) =>
    Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`),
  )
  if (file)
    parts.push(
      Buffer.from(
        `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${file.name}"\r\nContent-Type: application/octet-stream\r\n\r\n`,
      ),
      Buffer.from(file.bytes),
      Buffer.from('\r\n'),
    )
  parts.push(Buffer.from(`--${boundary}--\r\n`))
  return {
    body: ownBytes(Buffer.concat(parts)),
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
  }
}
