/**
 * Owns one file of a journal: lines that are on the disk before whoever wrote them is told so. Those that come while the disk works go together. A line
 * carries its checksum, so that one that was being written when the process died is told from one that was written.
 */
import { open, rm, type FileHandle } from 'node:fs/promises'
import path from 'node:path'
import { crc32 } from 'node:zlib'

/** Where a line lies, in bytes. */
export type Place = { readonly at: number; readonly length: number }

export type JournalFile = {
  /** Resolves when it is on the disk. Rejects when there is no room for it, with JournalFull, and when the disk does not take it: then it is not there. */
  append(text: string): Promise<Place>
  read(place: Place): Promise<string>
  /** Nothing that was appended before is needed any more. */
  clear(): void
  /** Of what was appended since it was empty, bytes. */
  size(): number
  /** Resolves when all of it has been done. Idempotent. */
  close(): Promise<void>
}

export class JournalFull extends Error {
  override readonly name = 'JournalFull'
}

type Options = {
  readonly file: string
  /** Bytes. */
  readonly limit: number
  /** Has the disk room for more? */
  readonly hasRoom: () => Promise<boolean>
  /** Done before the file is there. */
  readonly prepare: () => Promise<void>
}

type Waiting = { readonly line: Buffer; readonly done: PromiseWithResolvers<Place> }

/** The file is made with the first line, for this user only; there must be none. */
export function createJournalFile({ file, limit, hasRoom, prepare }: Options): JournalFile {
  let handle: FileHandle | null = null
  let size = 0
  let waiting: Waiting[] = []
  let waitingBytes = 0
  let isCleared = false
  let working: Promise<void> | null = null
  let isClosed = false

  const writeAll = async (batch: readonly Waiting[]): Promise<void> => {
    if (!(await hasRoom())) throw new JournalFull('the disk has no room left for steps of calls')
    if (!handle) await prepare()
    handle ??= await createFile(file)
    const bytes = Buffer.concat(batch.map(({ line }) => line))
    await writeAt(handle, bytes, size)
    await handle.datasync()
  }
  const flush = async (): Promise<void> => {
    while (waiting.length > 0 || isCleared) {
      // Before the lines that came after it.
      if (isCleared) {
        isCleared = false
        if (await isCut(handle, 0)) size = 0
      }
      const batch = waiting
      waiting = []
      waitingBytes = 0
      if (batch.length === 0) continue
      try {
        await writeAll(batch)
        for (const { line, done } of batch) {
          done.resolve({ at: size, length: line.length })
          size += line.length
        }
      } catch (error) {
        // Nobody acts on it, so whoever reads the file later must not find it. What cannot be cut off is written over by the next line.
        await isCut(handle, size)
        for (const { done } of batch) done.reject(error)
      }
    }
    working = null
  }
  const work = (): void => void (working ??= flush())

  return {
    append(text) {
      const line = toLine(text)
      if (isClosed) return Promise.reject(new JournalFull('the journal is closed'))
      if (size + waitingBytes + line.length > limit)
        return Promise.reject(new JournalFull(`${limit} bytes of steps of calls wait for the database`))
      const done = Promise.withResolvers<Place>()
      waiting.push({ line, done })
      waitingBytes += line.length
      work()
      return done.promise
    },
    async read({ at, length }) {
      if (!handle) throw new Error('a journal without a file has no lines')
      return readLine(handle, { at, length })
    },
    clear() {
      isCleared = true
      work()
    },
    size: () => size,
    async close() {
      isClosed = true
      while (working) await working
      await handle?.close()
      handle = null
    },
  }
}

export type FormerJournal = Pick<JournalFile, 'read' | 'close'> & {
  /** Tells each line in its order; what was being written at the end is none. Gives how many in the midst of others cannot be read. */
  scan(found: (text: string, place: Place) => void): Promise<number>
}

/** Of a process that is no more. */
export async function openFormerJournal(file: string): Promise<FormerJournal> {
  const handle = await open(file, 'r')
  return {
    async scan(found) {
      let [damaged, bad] = [0, 0]
      for await (const { line, at } of linesOf(handle)) {
        const text = textOf(line)
        if (text === null) {
          bad++
          continue
        }
        damaged += bad
        bad = 0
        found(text, { at, length: line.length + 1 })
      }
      return damaged
    },
    read: (place) => readLine(handle, place),
    close: () => handle.close(),
  }
}

const sumLength = 8

function toLine(text: string): Buffer {
  const bytes = Buffer.from(text)
  return Buffer.from(`${sumOf(bytes)} ${text}\n`)
}

const sumOf = (bytes: Buffer): string => crc32(bytes).toString(16).padStart(sumLength, '0')

/** Null: it is torn or damaged. */
function textOf(line: Buffer): string | null {
  const text = line.subarray(sumLength + 1)
  return line.length > sumLength && line.toString('latin1', 0, sumLength) === sumOf(text) ? text.toString() : null
}

async function readLine(handle: FileHandle, { at, length }: Place): Promise<string> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, at)
  const text = bytesRead === length ? textOf(buffer.subarray(0, length - 1)) : null
  if (text === null) throw new Error('a line of a journal is damaged')
  return text
}

const readAtOnce = 1 << 20

/** Without what follows the last end of a line. */
async function* linesOf(handle: FileHandle): AsyncIterable<{ readonly line: Buffer; readonly at: number }> {
  let rest = Buffer.alloc(0)
  let at = 0
  for (;;) {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(readAtOnce), 0, readAtOnce, at + rest.length)
    if (bytesRead === 0) return
    rest = Buffer.concat([rest, buffer.subarray(0, bytesRead)])
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      yield { line: rest.subarray(0, end), at }
      at += end + 1
      rest = rest.subarray(end + 1)
    }
  }
}

/** A file that is there after a crash of the machine is in its folder on the disk too. */
async function createFile(file: string): Promise<FileHandle> {
  const handle = await open(file, 'wx+', 0o600)
  try {
    await syncFolder(path.dirname(file))
    return handle
  } catch (error) {
    await handle.close()
    // The next line makes it again.
    await rm(file, { force: true })
    throw error
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function writeAt(handle: FileHandle, bytes: Buffer, at: number): Promise<void> {
  for (let written = 0; written < bytes.length;) {
    const { bytesWritten } = await handle.write(bytes, written, bytes.length - written, at + written)
    written += bytesWritten
  }
}

const isCut = async (handle: FileHandle | null, size: number): Promise<boolean> =>
  (await handle?.truncate(size).then(
    () => true,
    () => false,
  )) ?? true
