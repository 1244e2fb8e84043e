/** Owns recordings in a folder: `<folder>/<accountId>/<callId>.wav`, for this user only, further parts of them and what was made of them beside them. */
import { mkdir, open, readdir, rm, stat, statfs, writeFile, type FileHandle } from 'node:fs/promises'
import path from 'node:path'
import type { Clock } from '../model/clock.ts'
import { createInTurn } from '../model/in-turn.ts'
import type { Log } from '../model/log.ts'
import {
  isWritten,
  recordingFileOf,
  recordingForms,
  recordingKeyIn,
  recordingOfKey,
  type RecordingReader,
  type RecordingStore,
} from '../model/recording-store.ts'
import { createBlockPool, createRecordingWriter } from './recording-writer.ts'

const readBytes = 64 << 10

/** How old what is known of the disk may be, ms: all recordings together write some ten megabytes in it. */
const roomKnownFor = 1_000

export type RecordingFolderDeps = {
  readonly folder: string
  /** Bytes that recordings leave free on the disk of the folder, for the database that is there too. */
  readonly reserve?: number
  readonly clock: Clock
  readonly log: Log
}

export type RecordingFolder = RecordingStore & {
  /** Of a file that may not be there. */
  pathOf(key: string): string
  /** Bytes; null when there is none. */
  sizeOf(key: string): Promise<number | null>
  /** What `whole` has in a file of its own, beside this recording, as long as `work` runs. */
  withCopy(key: string, whole: RecordingReader, work: (file: string) => Promise<void>): Promise<void>
  /** Of every sound in it, and of what was captured without one, with the time of its last change, a few hundred at once. */
  list(): AsyncIterable<readonly { readonly key: string; readonly at: number }[]>
}

const listedAtOnce = 200

export function createRecordingFolder({ folder, reserve = 0, clock, log }: RecordingFolderDeps): RecordingFolder {
  const hasRoom = createRoom(folder, reserve, clock)
  const pool = createBlockPool()
  const inTurn = createInTurn({ now: () => performance.now(), later: setImmediate })
  return {
    pathOf: (key) => pathOf(folder, key),
    sizeOf: async (key) => (await stat(pathOf(folder, key)).catch(absent))?.size ?? null,
    list: () => listSounds(folder),
    async withCopy(key, whole, work) {
      if (!(await hasRoom())) throw new Error('the disk has no room for what a recording is copied from')
      await withCopy(`${pathOf(folder, key)}.part`, whole, work)
    },
    create(key) {
      if (!isWritten(recordingOfKey(key).form)) throw new Error('that form of a recording is made of another one')
      const file = pathOf(folder, key)
      return createRecordingWriter({
        open: () => createFile(file),
        hasRoom,
        pool,
        inTurn,
        clock,
        log: log.with({ recording: key }),
      })
    },
    async read(key) {
      const file = pathOf(folder, key)
      const stats = await stat(file).catch(absent)
      return stats === null ? null : createReader(file, stats.size)
    },
    async remove(key) {
      const removed = await Promise.all(
        recordingForms.map((form) => removeFile(pathOf(folder, recordingKeyIn(form, key)))),
      )
      return removed.includes(true) ? 'removed' : 'absent'
    },
  }
}

/** A name of which nothing stays: the recording itself takes it along when it is removed, and the next try begins anew. */
async function withCopy(file: string, whole: RecordingReader, work: (file: string) => Promise<void>): Promise<void> {
  try {
    await writeFile(file, whole.stream(0, whole.size - 1), { mode: 0o600 })
    await work(file)
  } finally {
    await rm(file, { force: true })
  }
}

/** With what a copy that was being made left behind. False: there was none. */
async function removeFile(file: string): Promise<boolean> {
  await rm(`${file}.part`, { force: true })
  if ((await stat(file).catch(absent)) === null) return false
  await rm(file, { force: true })
  return true
}

async function* listSounds(folder: string): AsyncIterable<readonly { readonly key: string; readonly at: number }[]> {
  let found: { key: string; at: number }[] = []
  for (const account of await readdir(folder)) {
    for (const name of account.startsWith('.') ? [] : await readdir(path.join(folder, account)).catch(noFolder)) {
      const key = soundOf(`${account}/${name}`)
      if (key === null) continue
      const stats = await stat(path.join(folder, account, name)).catch(absent)
      if (stats !== null) found.push({ key, at: stats.mtimeMs })
      if (found.length < listedAtOnce) continue
      yield found
      found = []
    }
  }
  yield found
}

/** Null: made of another file, or whatever an operator has put there. */
function soundOf(key: string): string | null {
  try {
    return isWritten(recordingOfKey(key).form) ? recordingKeyIn('wav', key) : null
  } catch {
    return null
  }
}

/** Looks at the disk once for all recordings. A disk that cannot be asked has room until a write says otherwise. */
function createRoom(folder: string, reserve: number, clock: Clock): () => Promise<boolean> {
  let known: Promise<boolean> = Promise.resolve(true)
  let knownAt = -Infinity
  const look = async (): Promise<boolean> => {
    const { bavail, bsize } = await statfs(folder)
    return bavail * bsize > reserve
  }
  return () => {
    if (reserve === 0 || clock.now() - knownAt < roomKnownFor) return known
    knownAt = clock.now()
    known = look().catch(() => true)
    return known
  }
}

function pathOf(folder: string, key: string): string {
  const { accountId, ...named } = recordingOfKey(key)
  return path.join(folder, accountId, recordingFileOf(named))
}

/** A recording that exists is never overwritten. The folder of its account is there but for the first one, so it is made only where it lacks. */
async function createFile(file: string): Promise<FileHandle> {
  try {
    return await open(file, 'wx', 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
    return open(file, 'wx', 0o600)
  }
}

function createReader(file: string, size: number): RecordingReader {
  return {
    size,
    stream(from, to) {
      if (from < 0 || to >= size || from > to + 1) throw new RangeError(`bytes ${from} to ${to} of ${size}`)
      return streamOf(file, from, to)
    },
  }
}

/** Opens the file when first asked for bytes: a stream that nobody reads holds nothing. */
function streamOf(file: string, from: number, to: number): ReadableStream<Uint8Array> {
  let position = from
  let handle: FileHandle | null = null
  const release = async () => {
    await handle?.close()
    handle = null
  }
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    handle ??= await open(file, 'r')
    const chunk = new Uint8Array(Math.min(readBytes, to + 1 - position))
    const { bytesRead } = await handle.read(chunk, 0, chunk.length, position)
    if (bytesRead === 0 && position <= to) throw new Error('a recording became shorter while it was read')
    position += bytesRead
    if (bytesRead > 0) controller.enqueue(chunk.subarray(0, bytesRead))
    if (position > to) controller.close()
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          await pull(controller)
        } catch (error) {
          await release()
          throw error
        }
        if (position > to) await release()
      },
      cancel: release,
    },
    { highWaterMark: 0 },
  )
}

function noFolder(error: NodeJS.ErrnoException): string[] {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return []
  throw error
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null
  throw error
}
