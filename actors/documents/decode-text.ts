/** Owns how the bytes of a text file become text: which encoding they are in, and whether they are a text at all. */
import { Unreadable } from './unreadable.ts'

/** First bytes of what is often named as something else. */
const signatures: readonly (readonly number[])[] = [
  [0x25, 0x50, 0x44, 0x46, 0x2d],
  [0x50, 0x4b, 0x03, 0x04],
  [0x89, 0x50, 0x4e, 0x47],
  [0x47, 0x49, 0x46, 0x38],
  [0xff, 0xd8, 0xff],
  [0x1f, 0x8b],
  [0xd0, 0xcf, 0x11, 0xe0],
  [0x7f, 0x45, 0x4c, 0x46],
  [0x52, 0x49, 0x46, 0x46],
]
/** Of a text hardly a character is one that nobody can read. */
const maxUnprintable = 0.02
/** Enough to see by what a text is written in. */
const looked = 65_536

const startsWith = (bytes: Uint8Array, start: readonly number[]): boolean =>
  start.every((byte, at) => bytes[at] === byte)

export const isPdf = (bytes: Uint8Array): boolean => {
  // Some have a few bytes of something else in front of them (ISO 32000-1 annex H.3).
  const head = new TextDecoder('latin1').decode(bytes.subarray(0, 1024))
  return head.includes('%PDF-')
}
export const isZip = (bytes: Uint8Array): boolean => startsWith(bytes, [0x50, 0x4b, 0x03, 0x04])
/** OLE: what Word wrote before docx, and docx files that are encrypted. */
export const isOle = (bytes: Uint8Array): boolean => startsWith(bytes, [0xd0, 0xcf, 0x11, 0xe0])

/** `declared`: as the text itself says, where nothing in front of it does. Throws Unreadable. */
export function decodeText(bytes: Uint8Array, declared: string | null = null): string {
  if (signatures.some((signature) => startsWith(bytes, signature))) throw new Unreadable('wrong_type')
  const text = new TextDecoder(encodingOf(bytes, declared)).decode(bytes)
  if (unprintableShareOf(text.slice(0, looked)) > maxUnprintable) throw new Unreadable('wrong_type')
  return text.replaceAll('\0', '').toWellFormed()
}

function encodingOf(bytes: Uint8Array, declared: string | null): string {
  if (startsWith(bytes, [0xef, 0xbb, 0xbf])) return 'utf-8'
  if (startsWith(bytes, [0xff, 0xfe])) return 'utf-16le'
  if (startsWith(bytes, [0xfe, 0xff])) return 'utf-16be'
  const head = bytes.subarray(0, looked)
  const [even, odd] = zerosOf(head)
  // Half of the bytes of a text in Latin letters, always the same half. A lone NUL is none of that.
  const isPaired = bytes.length % 2 === 0 && even + odd > 1
  if (isPaired && odd > head.length / 5 && even < odd / 10) return 'utf-16le'
  if (isPaired && even > head.length / 5 && odd < even / 10) return 'utf-16be'
  if (isUtf8(bytes)) return 'utf-8'
  return declared !== null && isKnown(declared) ? declared : 'windows-1252'
}

function zerosOf(bytes: Uint8Array): readonly [even: number, odd: number] {
  const zeros: [number, number] = [0, 0]
  for (let at = 0; at < bytes.length; at += 1) if (bytes[at] === 0) zeros[at % 2 === 0 ? 0 : 1] += 1
  return zeros
}

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return true
  } catch {
    // That is what was asked.
    return false
  }
}

function isKnown(label: string): boolean {
  try {
    return new TextDecoder(label).encoding !== ''
  } catch {
    // A page may declare anything.
    return false
  }
}

/** What texts have besides letters and signs. NULs are left out of them. */
const harmless = new Set('\0\t\n\v\f\r\x1b\x85')

function unprintableShareOf(text: string): number {
  const controls = text.match(/\p{Cc}|\ufffd/gu) ?? []
  return text.length === 0 ? 0 : controls.filter((sign) => !harmless.has(sign)).length / text.length
}
