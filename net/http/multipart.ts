/**
 * Owns forms with files as browsers and HTTP clients send them (RFC 7578 on RFC 2046). The bytes are looked through once and never copied: a part is a
 * view of the body.
 */
import { Buffer } from 'node:buffer'

export type FormPart = {
  readonly name: string
  /** Null: a field, and no file. */
  readonly fileName: string | null
  readonly bytes: Uint8Array<ArrayBuffer>
}

/** More than any form of this service has. */
const maxParts = 2_000
const maxHead = 8 * 1024

/** The boundary that a Content-Type names; null for one of no form. */
export function boundaryOf(contentType: string): string | null {
  if (!/^multipart\/form-data\s*;/i.test(contentType)) return null
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))/i.exec(contentType) ?? []
  return quoted ?? plain ?? null
}

/** Null for what is no form, or does not end. */
export function readForm(body: Uint8Array<ArrayBuffer>, boundary: string): FormPart[] | null {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  const delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
  // What stands before the first delimiter is nobody's; that one may be the first thing there is.
  let at = bytes.indexOf(delimiter.subarray(2))
  if (at < 0 || (at > 0 && bytes.indexOf(delimiter) !== at - 2)) return null
  at += delimiter.length - 2
  const parts: FormPart[] = []
  while (parts.length <= maxParts) {
    if (bytes.subarray(at, at + 2).equals(dashes)) return parts
    const start = behindLine(bytes, at)
    const headEnd = start === null ? -1 : bytes.indexOf(blankLine, Math.max(0, start - 2))
    if (start === null || headEnd < 0 || headEnd - start > maxHead) return null
    const from = headEnd + blankLine.length
    const end = bytes.indexOf(delimiter, from - 2)
    const part = end < 0 ? null : partOf(bytes.subarray(start, Math.max(start, headEnd)).toString('utf8'))
    if (part === null) return null
    parts.push({ ...part, bytes: body.subarray(from, Math.max(from, end)) })
    at = end + delimiter.length
  }
  return null
}

const dashes = Buffer.from('--')
const blankLine = Buffer.from('\r\n\r\n')

/** Padding may follow a delimiter (RFC 2046 section 5.1.1). */
function behindLine(bytes: Buffer, from: number): number | null {
  let at = from
  while (bytes[at] === 0x20 || bytes[at] === 0x09) at += 1
  return bytes[at] === 0x0d && bytes[at + 1] === 0x0a ? at + 2 : null
}

function partOf(head: string): Omit<FormPart, 'bytes'> | null {
  const disposition = /^content-disposition:\s*form-data\s*(;.*)$/im.exec(head)?.[1]
  if (disposition === undefined) return null
  const name = parameterOf(disposition, 'name')
  return name === null ? null : { name, fileName: parameterOf(disposition, 'filename') }
}

/** As browsers write it: quotes and line ends percent-encoded; a backslash in front of a quote, as others do (RFC 7578 section 4.2). */
function parameterOf(disposition: string, parameter: string): string | null {
  const found = new RegExp(`;\\s*${parameter}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;"]+))`, 'i').exec(disposition)
  if (!found) return null
  const value = found[1] ?? found[2] ?? ''
  return value
    .replace(/\\(["\\])/g, '$1')
    .replace(/%(22|0D|0A)/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}
