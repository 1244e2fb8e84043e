/** Owns cutting the head of a message, start line and header lines, out of bytes. RFC 3261 §7.1–§7.5, §18.3. */
import { headerNameOf } from './header-names.ts'
import { isToken } from './header-text.ts'
import type { HeaderField } from './message.ts'

/** Bytes of a message with its body. */
export const maxMessageBytes = 65_536
export const maxHeaderFields = 200
/** Characters of one header line, after unfolding. */
export const maxLineLength = 16_384

export type Head = {
  readonly startLine: string
  readonly headers: readonly HeaderField[]
  /** The first thing that is wrong with the header lines; what is right was read nevertheless. */
  readonly fault: string | null
}

/** Space in a row. No peer writes as much, and the parser of the library that apps use takes quadratic time for it. */
const maxBlank = 100
const blank = /\s{100}/

/** Control characters. Others than HTAB stand in a header field only as quoted pairs. RFC 3261 §25.1. */
const control = /[^\t\x20-\x7e\u0080-\uffff]/g
const quotedPair = /\\[^\r\n\u0080-\uffff]/g

/** A NUL would end the text for others, and no database takes it. */
export const hasControls = (text: string): boolean =>
  text.search(control) !== -1 && text.replaceAll(quotedPair, '').search(control) !== -1

export const withoutControls = (text: string): string => text.replaceAll(control, ' ').trim()

const carriageReturn = 13
const lineFeed = 10

/** Line ends in front of a message are keep-alives. §7.5. */
export function startOfMessage(bytes: Uint8Array): number {
  let start = 0
  while (bytes[start] === carriageReturn || bytes[start] === lineFeed) start += 1
  return start
}

/**
 * Where the body begins: behind the first empty line from `start` on. -1: it has not come yet. Lines that end with LF alone are taken.
 * For streams: search begins again at `from`, so that a head that trickles in costs nothing twice.
 */
export function endOfHead(bytes: Uint8Array, start: number, from = start): number {
  let at = Math.max(start, from - 3)
  while ((at = bytes.indexOf(lineFeed, at)) !== -1) {
    if (bytes[at + 1] === lineFeed) return at + 2
    if (bytes[at + 1] === carriageReturn && bytes[at + 2] === lineFeed) return at + 3
    at += 1
  }
  return -1
}

export function readHead(bytes: Uint8Array): Head {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
  const [startLine = '', ...lines] = unfold(text)
  const headers: HeaderField[] = []
  let fault: string | null = null
  for (const line of lines) {
    if (headers.length === maxHeaderFields) return { startLine, headers, fault: 'Too Many Header Fields' }
    const field = readField(line)
    if (typeof field === 'string') fault ??= field
    else headers.push(field)
  }
  return { startLine, headers, fault }
}

/** A line that begins with space or tab goes on with the one before it; the break counts as one space. §7.3.1. */
function unfold(text: string): string[] {
  const lines: string[] = []
  for (const line of text.split(/\r?\n/)) {
    if (line === '') continue
    // Nothing grown is looked into here: thousands of such lines stay cheap.
    const goesOn = (line[0] === ' ' || line[0] === '\t') && lines.length > 1
    if (goesOn) lines[lines.length - 1] = `${lines.at(-1) ?? ''} ${line.trim()}`
    else lines.push(lines.length === 0 ? line : line.trimEnd())
  }
  return lines
}

function readField(line: string): HeaderField | string {
  if (line.length > maxLineLength) return 'Header Field Too Long'
  if (line.length > maxBlank && blank.test(line)) return 'Header Field Of Nothing But Space'
  const colon = line.indexOf(':')
  const written = line.slice(0, Math.max(colon, 0)).trimEnd()
  if (!isToken(written)) return 'Malformed Header Field'
  // A bare CR would end the line for others.
  if (line.includes('\r')) return `Malformed ${headerNameOf(written)}`
  return { name: headerNameOf(written), value: line.slice(colon + 1).trim() }
}

/** What Content-Length says. Null: there is none; NaN: it is malformed, or said twice and not alike. */
export function contentLengthIn(headers: readonly HeaderField[]): number | null {
  const values = new Set(headers.flatMap((field) => (field.name === 'Content-Length' ? [field.value] : [])))
  const [value] = values
  if (value === undefined) return null
  return values.size === 1 && /^\d{1,10}$/.test(value) ? Number(value) : Number.NaN
}
