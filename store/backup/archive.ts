/**
 * Owns what a backup looks like: one tar archive, compressed with zstd. docs/backup.md "What is in it" tells it to operators. In this order:
 * - `manifest.json`: what follows, and by which version it was made.
 * - `app.key`: the key of DATA_DIR, where there is one.
 * - `tables/<table>/<number>`: whole rows of a table, in the text format of COPY.
 * - `recordings/…`: files of the folder of recordings, and its id.
 * - `end.json`: the SHA-256 of every byte of the tar archive in front of it. An archive without it is none.
 */
import { createHash, type Hash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib'
import { z } from 'zod'
import { ArchiveFlaw } from './archive-flaw.ts'
import {
  createByteSource,
  paddingOf,
  readTarHeader,
  tarEnd,
  tarHeaderOf,
  tarPaddingOf,
  type ByteSource,
  type TarEntry,
} from './tar.ts'

const version = 1
const manifestFile = 'manifest.json'
const endFile = 'end.json'
export const keyFile = 'app.key'
/** Larger than any that is made here: what it is read into is memory. */
const maxTextBytes = 256 << 20

const Format = z.object({ format: z.literal('parley backup'), version: z.number() })

export const Manifest = z.object({
  ...Format.shape,
  madeAt: z.string(),
  /** Those that the database had, in order. */
  migrations: z.array(z.object({ name: z.string(), sha256: z.string() })),
  tables: z.array(z.object({ name: z.string(), columns: z.array(z.string()) })),
  /** The last value that was given; null: none was. */
  sequences: z.array(z.object({ name: z.string(), value: z.string().nullable() })),
  /** By what the secrets in the database are sealed, the newest first: how what is sealed by each begins. */
  keys: z.array(z.string()),
})
export type Manifest = z.infer<typeof Manifest>

/** Of a table as it is archived. */
export type TableOfArchive = Manifest['tables'][number]

export const End = z.object({
  sha256: z.string(),
  rows: z.record(z.string(), z.number()),
  recordings: z.object({ count: z.number(), bytes: z.number() }),
  /** Recordings that were in the folder when the tables were read, and in the storage when their turn came. */
  shipped: z.array(z.string()),
})
export type End = z.infer<typeof End>

/** A file of the archive. */
export type Part = TarEntry & { readonly body: AsyncIterable<Uint8Array> | readonly Uint8Array[] }

export const textPart = (name: string, text: string | Uint8Array, mtime: number): Part => {
  const bytes = Buffer.from(text)
  return { name, size: bytes.length, mtime, body: [bytes] }
}

export type Content = {
  readonly manifest: Omit<Manifest, 'format' | 'version'>
  readonly parts: AsyncIterable<Part>
  /** When all parts are written. */
  end(): Omit<End, 'sha256'>
}

/**
 * The file is there when it is whole and on the disk, and not before. Beside it stands `<file>.part` meanwhile, which goes when the work fails. Both are for
 * this user only.
 */
export async function writeArchive(file: string, content: Content): Promise<void> {
  const draft = `${file}.part`
  await rm(draft, { force: true })
  try {
    const compress = createZstdCompress({ params: { [constants.ZSTD_c_checksumFlag]: 1 } })
    await pipeline(bytesOf(content), compress, createWriteStream(draft, { flags: 'wx', mode: 0o600, flush: true }))
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
  await syncFolder(path.dirname(file))
}

export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function* bytesOf({ manifest, parts, end }: Content): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256')
  const hashed = (bytes: Uint8Array): Uint8Array => {
    hash.update(bytes)
    return bytes
  }
  const mtime = Date.parse(manifest.madeAt)
  const first = JSON.stringify({ format: 'parley backup', version, ...manifest }, null, 1)
  for await (const bytes of partBytes(textPart(manifestFile, first, mtime))) yield hashed(bytes)
  for await (const part of parts) for await (const bytes of partBytes(part)) yield hashed(bytes)
  const last = JSON.stringify({ sha256: hash.digest('hex'), ...end() }, null, 1)
  yield* partBytes(textPart(endFile, last, mtime))
  yield tarEnd()
}

async function* partBytes(part: Part): AsyncGenerator<Uint8Array> {
  yield tarHeaderOf(part)
  let left = part.size
  for await (const bytes of part.body) {
    left -= bytes.length
    yield bytes
  }
  if (left !== 0) throw new Error(`${part.name} changed its size while it was archived`)
  yield tarPaddingOf(part.size)
}

export type Archive = {
  readonly manifest: Manifest
  /** The text of the key file; null: there is none. */
  readonly key: string | null
  readonly end: End
}

/** Reads all of it. Throws ArchiveFlaw. `read` is told how many bytes of the file have been read by now. */
export async function checkArchive(file: string, read?: (bytes: number) => void): Promise<Archive> {
  let manifest: Manifest | null = null
  let key: string | null = null
  let end: End | null = null
  for await (const part of readArchive(file, read)) {
    if (manifest === null) manifest = manifestIn(part.name, await textOf(part))
    if (part.name === keyFile) key = await textOf(part)
    if (part.name === endFile) end = checked(End, await textOf(part))
  }
  if (manifest === null || end === null) throw new ArchiveFlaw('it is empty')
  return { manifest, key, end }
}

/**
 * Every part in order, `manifest.json` first and `end.json` last; that one comes when the checksum has proved right. What of a body is not read before
 * the next part is passed over. Throws ArchiveFlaw; errors of the file system as they are.
 */
export async function* readArchive(file: string, read?: (bytes: number) => void): AsyncGenerator<Part> {
  const chunks = decompressed(file, read)
  try {
    const source = createByteSource(chunks)
    const hash = createHash('sha256')
    for (;;) {
      const header = await readTarHeader(source)
      if (header === null) throw new ArchiveFlaw('it has no end: it was cut, or never completed')
      const { entry, block } = header
      if (entry.name === endFile) return yield await endPart(entry, source, hash)
      hash.update(block)
      const body = bodyOf(entry, source, hash)
      yield { ...entry, body }
      for await (const _ of body);
    }
  } finally {
    await chunks.return(undefined)
  }
}

/** With what fills its last block. May be begun again where it was left. */
async function* bodyOf({ size }: TarEntry, source: ByteSource, hash: Hash): AsyncGenerator<Uint8Array> {
  for (let left = size; left > 0;) {
    const bytes = await source.some(left)
    hash.update(bytes)
    left -= bytes.length
    yield bytes
  }
  hash.update(await source.exactly(paddingOf(size)))
}

async function endPart(entry: TarEntry, source: ByteSource, hash: Hash): Promise<Part> {
  const text = await textOf({ ...entry, body: [await source.exactly(entry.size)] })
  await source.exactly(paddingOf(entry.size))
  if (checked(End, text).sha256 !== hash.digest('hex'))
    throw new ArchiveFlaw('it is damaged: its checksum is another one')
  // To the last byte of the file: the compression has a checksum of its own there.
  if ((await source.rest(tarEnd().length + 1)).compare(tarEnd()) !== 0)
    throw new ArchiveFlaw('it is damaged: it ends otherwise than it should')
  return textPart(entry.name, text, entry.mtime)
}

async function textOf({ size, body }: Part): Promise<string> {
  if (size > maxTextBytes) throw new ArchiveFlaw('it is damaged: a text in it is too large')
  const chunks: Uint8Array[] = []
  for await (const bytes of body) chunks.push(bytes)
  return Buffer.concat(chunks).toString('utf8')
}

function manifestIn(name: string, text: string): Manifest {
  if (name !== manifestFile) throw new ArchiveFlaw('it is no backup of this service: it does not begin with a manifest')
  const format = checked(Format, text)
  if (format.version !== version)
    throw new ArchiveFlaw(`it is of a newer version: its format is ${format.version}, and ${version} is known here`)
  return checked(Manifest, text)
}

function checked<Schema extends z.ZodType>(schema: Schema, text: string): z.infer<Schema> {
  const parsed = schema.safeParse(jsonOf(text))
  if (parsed.success) return parsed.data
  throw new ArchiveFlaw('it is no backup of this service, or damaged: its description cannot be read')
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null // No schema takes it.
  }
}

async function* decompressed(file: string, read?: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  const raw = createReadStream(file, { highWaterMark: 256 << 10 })
  const counted = async function* (): AsyncGenerator<Uint8Array> {
    for await (const bytes of raw as AsyncIterable<Buffer>) {
      yield bytes
      read?.(raw.bytesRead)
    }
  }
  const decompress = createZstdDecompress()
  const piping = pipeline(counted(), decompress)
  piping.catch(() => undefined) // The reader is told of it.
  try {
    for await (const bytes of decompress as AsyncIterable<Buffer>) yield bytes
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (code === 'Z_BUF_ERROR') throw new ArchiveFlaw('it ends in the middle: it was cut, or never completed')
    if (code === 'ZSTD_error_prefix_unknown') throw new ArchiveFlaw('it is no backup of this service')
    if (code.startsWith('ZSTD_')) throw new ArchiveFlaw('it is damaged: it cannot be decompressed', { cause: error })
    throw error
  } finally {
    raw.destroy()
  }
}
