/**
 * Owns looking into a zip archive that a stranger sent: what its directory names, inflated no further than a bound, whatever the archive says of
 * itself. APPNOTE.TXT 6.3.10, without ZIP64, encryption and several disks, which no document needs.
 */
import { inflateRawSync } from 'node:zlib'
import { Unreadable } from './unreadable.ts'

export type BoundedZip = {
  has(name: string): boolean
  /** Throws Unreadable: there is none, it is broken, or all that was read is more than the bound. */
  read(name: string): Uint8Array
}

type Entry = { readonly method: number; readonly flags: number; readonly size: number; readonly start: number }

const endMark = 0x06054b50
const entryMark = 0x02014b50
const localMark = 0x04034b50
const maxEntries = 20_000
/** The end of the directory, and the comment that may follow it. */
const maxTail = 22 + 65_535

/** Throws Unreadable. */
export function openZip(bytes: Uint8Array, maxInflated: number): BoundedZip {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const entries = orUnreadable(() => entriesOf(bytes, view))
  const read = new Map<string, Uint8Array>()
  let left = maxInflated

  const inflate = ({ method, flags, size, start }: Entry): Uint8Array => {
    if ((flags & 1) !== 0) throw new Unreadable('encrypted')
    if (view.getUint32(start, true) !== localMark) throw new Unreadable('unreadable')
    const from = start + 30 + view.getUint16(start + 26, true) + view.getUint16(start + 28, true)
    const packed = bytes.subarray(from, from + size)
    if (method === 0) return packed
    if (method !== 8) throw new Unreadable('unreadable')
    return inflateRawSync(packed, { maxOutputLength: Math.max(1, left) })
  }
  return {
    has: (name) => entries.has(name),
    read(name) {
      const known = read.get(name)
      if (known) return known
      const entry = entries.get(name)
      if (!entry) throw new Unreadable('unreadable')
      const content = orUnreadable(() => inflate(entry))
      left -= content.length
      if (left < 0) throw new Unreadable('too_complex')
      read.set(name, content)
      return content
    },
  }
}

function entriesOf(bytes: Uint8Array, view: DataView): Map<string, Entry> {
  const end = endOf(view)
  const count = view.getUint16(end + 10, true)
  if (count > maxEntries) throw new Unreadable('too_complex')
  const entries = new Map<string, Entry>()
  const names = new TextDecoder()
  let at = view.getUint32(end + 16, true)
  for (let no = 0; no < count; no += 1) {
    if (view.getUint32(at, true) !== entryMark) throw new Unreadable('unreadable')
    const nameLength = view.getUint16(at + 28, true)
    const name = names.decode(bytes.subarray(at + 46, at + 46 + nameLength))
    // Of two with one name the first counts.
    if (!entries.has(name))
      entries.set(name, {
        flags: view.getUint16(at + 8, true),
        method: view.getUint16(at + 10, true),
        size: view.getUint32(at + 20, true),
        start: view.getUint32(at + 42, true),
      })
    at += 46 + nameLength + view.getUint16(at + 30, true) + view.getUint16(at + 32, true)
  }
  return entries
}

function endOf(view: DataView): number {
  for (let at = view.byteLength - 22; at >= Math.max(0, view.byteLength - maxTail); at -= 1)
    if (view.getUint32(at, true) === endMark) return at
  throw new Unreadable('unreadable')
}

/** What lies outside of the archive, or is no deflated content, is nothing that can be read. */
function orUnreadable<Value>(look: () => Value): Value {
  try {
    return look()
  } catch (error) {
    if (error instanceof Unreadable) throw error
    const isTooLarge = (error as { code?: unknown } | null)?.code === 'ERR_BUFFER_TOO_LARGE'
    throw new Unreadable(isTooLarge ? 'too_complex' : 'unreadable', error)
  }
}
