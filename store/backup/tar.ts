/**
 * Owns the container of a backup: tar as POSIX has it (IEEE Std 1003.1, "ustar Interchange Format"), with regular files only, so that any tar reads it.
 * A header of 512 bytes, then the file, filled up with zeros to a multiple of 512.
 */
import { ArchiveFlaw } from './archive-flaw.ts'

export type TarEntry = {
  readonly name: string
  /** Bytes. */
  readonly size: number
  /** Ms; whole seconds are kept. */
  readonly mtime: number
}

const blockBytes = 512
/** Eleven octal digits. */
const maxSize = 8 ** 11 - 1
/** Where a header has what. */
const at = { mode: 100, uid: 108, gid: 116, size: 124, mtime: 136, checksum: 148, type: 156, magic: 257, prefix: 345 }
const nameBytes = 100
const prefixBytes = 155
const regularFile = 0x30

/** For this user only. */
export function tarHeaderOf({ name, size, mtime }: TarEntry): Buffer {
  if (size > maxSize) throw new Error(`${name} is too large for an archive`)
  const header = Buffer.alloc(blockBytes)
  const [prefix, rest] = splitName(name)
  header.write(rest, 0)
  header.write(prefix, at.prefix)
  header.write(octal(0o600, 7), at.mode)
  header.write(octal(0, 7), at.uid)
  header.write(octal(0, 7), at.gid)
  header.write(octal(size, 11), at.size)
  header.write(octal(Math.max(0, Math.trunc(mtime / 1000)), 11), at.mtime)
  header[at.type] = regularFile
  header.write('ustar\u000000', at.magic)
  header.write(`${octal(checksumOf(header), 6)}\0 `, at.checksum)
  return header
}

/** What fills the last block of a file. */
export const tarPaddingOf = (size: number): Buffer => Buffer.alloc(paddingOf(size))

/** Behind the last file. */
export const tarEnd = (): Buffer => Buffer.alloc(2 * blockBytes)

/** Bytes of a stream, asked for as they are needed. */
export type ByteSource = {
  /** Just so many. Throws ArchiveFlaw when the stream ends before. */
  exactly(count: number): Promise<Buffer>
  /** At least one and at most so many. Throws ArchiveFlaw at the end. */
  some(most: number): Promise<Buffer>
  /** All there is, as far as it is no more. */
  rest(most: number): Promise<Buffer>
}

export function createByteSource(chunks: AsyncIterator<Uint8Array>): ByteSource {
  let held: Buffer = Buffer.alloc(0)
  const next = async (): Promise<Buffer | null> => {
    const { value, done } = await chunks.next()
    return done ? null : Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  }
  const more = async (): Promise<Buffer> => {
    const bytes = await next()
    if (bytes === null) throw new ArchiveFlaw('it ends in the middle: it was cut, or never completed')
    return bytes
  }
  const take = (count: number): Buffer => {
    const taken = held.subarray(0, count)
    held = held.subarray(count)
    return taken
  }
  return {
    async exactly(count) {
      while (held.length < count) held = Buffer.concat([held, await more()])
      return take(count)
    },
    async some(most) {
      while (held.length === 0) held = await more()
      return take(most)
    },
    async rest(most) {
      for (let bytes = await next(); bytes !== null && held.length < most; bytes = await next())
        held = Buffer.concat([held, bytes])
      return take(most)
    },
  }
}

/** Null behind the last file. `block`: the bytes of the header. */
export async function readTarHeader(source: ByteSource): Promise<{ entry: TarEntry; block: Buffer } | null> {
  const block = await source.exactly(blockBytes)
  if (block.every((byte) => byte === 0)) return null
  if (Number.parseInt(textAt(block, at.checksum, 8), 8) !== checksumOf(block))
    throw new ArchiveFlaw('it is damaged: what stands in front of a file is no header of a tar archive')
  if (block[at.type] !== regularFile) throw new ArchiveFlaw('it holds something that is no file')
  const prefix = textAt(block, at.prefix, prefixBytes)
  const name = `${prefix}${prefix && '/'}${textAt(block, 0, nameBytes)}`
  const size = Number.parseInt(textAt(block, at.size, 12), 8)
  const mtime = Number.parseInt(textAt(block, at.mtime, 12), 8) * 1000
  return { entry: { name, size, mtime }, block }
}

export const paddingOf = (size: number): number => (blockBytes - (size % blockBytes)) % blockBytes

const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, '0')

/** A long name is cut at a slash. */
function splitName(name: string): readonly [prefix: string, rest: string] {
  if (Buffer.byteLength(name) <= nameBytes) return ['', name]
  const cut = name.lastIndexOf('/')
  const [prefix, rest] = [name.slice(0, Math.max(cut, 0)), name.slice(cut + 1)]
  if (prefix === '' || Buffer.byteLength(prefix) > prefixBytes || Buffer.byteLength(rest) > nameBytes)
    throw new Error(`${name} is too long a name for an archive`)
  return [prefix, rest]
}

/** The sum of all bytes of the header, with spaces where the sum stands. */
function checksumOf(header: Buffer): number {
  let sum = 8 * 0x20
  for (const [place, byte] of header.entries()) if (place < at.checksum || place >= at.checksum + 8) sum += byte
  return sum
}

function textAt(block: Buffer, from: number, most: number): string {
  const field = block.subarray(from, from + most)
  const end = field.indexOf(0)
  return field.toString('utf8', 0, end === -1 ? most : end).trim()
}
