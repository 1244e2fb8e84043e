/**
 * Owns the writing of one recording while its call runs: audio never waits for the disk, and the file stays readable when the
 * process is killed (at most the last quarter of a second is lost).
 */
import type { FileHandle } from 'node:fs/promises'
import type { Cancel, Clock } from '../model/clock.ts'
import type { Log } from '../model/log.ts'
import type { RecordingWriter } from '../model/recording-store.ts'

/** Two minutes of split sound: a disk that slow does not come back in time. */
const maxBacklogBytes = 8 << 20
/** Frames come fifty times a second; the disk is asked four times a second. */
const flushDelay = 250
const flushBytes = 64 << 10

export type RecordingWriterDeps = {
  /** The empty file. A rejection is logged, and the recording is lost. */
  readonly opening: Promise<FileHandle>
  readonly clock: Clock
  readonly log: Log
}

/**
 * Waiting: the backlog fills and a timer runs. Flushing: one chain writes until the backlog is empty. Given up (the backlog was full,
 * or the disk failed): everything new is ignored, and what was written stays.
 */
export function createRecordingWriter({ opening, clock, log }: RecordingWriterDeps): RecordingWriter {
  const backlog = createBacklog()
  const write = createSequentialWrite(opening)
  let accepting = true
  let chain: Promise<void> | null = null
  let cancelTimer: Cancel | null = null
  let closed: Promise<void> | null = null

  const giveUp = (message: string, fields: { readonly error?: unknown }) => {
    if (accepting) log.error(message, fields)
    accepting = false
  }
  const fail = (error: unknown) => {
    giveUp('recording cannot be written', { error })
    backlog.clear()
  }
  const drain = async () => {
    while (backlog.bytes() > 0) {
      for (const next of backlog.take()) {
        await write(next)
        backlog.written(next)
      }
    }
  }
  const flush = () => {
    cancelTimer?.()
    cancelTimer = null
    chain ??= drain()
      .catch(fail)
      .finally(() => (chain = null))
    return chain
  }
  const enqueue = (atStart: boolean, bytes: Uint8Array) => {
    if (!accepting || closed !== null || bytes.length === 0) return
    if (backlog.bytes() + bytes.length > maxBacklogBytes) return giveUp('recording backlog is full', {})
    backlog.add(atStart, bytes)
    if (backlog.bytes() >= flushBytes) void flush()
    else cancelTimer ??= clock.after(flushDelay, () => void flush())
  }
  const close = async () => {
    while (backlog.bytes() > 0) await flush()
    cancelTimer?.()
    await closeFile(opening).catch(fail)
  }
  opening.catch(fail)
  return {
    append: (bytes) => enqueue(false, bytes),
    overwriteStart: (bytes) => enqueue(true, bytes),
    close: () => (closed ??= close()),
  }
}

/** Bytes for the end, or `atStart` for the beginning. */
type Write = { readonly atStart: boolean; readonly parts: Uint8Array[] }

/** What waits, in order (appends that follow each other are one write), and how much is not on disk yet. */
function createBacklog() {
  let waiting: Write[] = []
  let bytes = 0
  return {
    bytes: () => bytes,
    add(atStart: boolean, added: Uint8Array) {
      // A copy (`slice` of a Buffer is none): the caller may use its own again at once.
      const part = new Uint8Array(added)
      const last = waiting.at(-1)
      if (last && !atStart && !last.atStart) last.parts.push(part)
      else waiting.push({ atStart, parts: [part] })
      bytes += part.length
    },
    take(): Write[] {
      const taken = waiting
      waiting = []
      return taken
    },
    written({ parts }: Write) {
      for (const part of parts) bytes -= part.length
    },
    clear() {
      waiting = []
      bytes = 0
    },
  }
}

/** One at a time: the caller waits for the last write before the next. */
function createSequentialWrite(opening: Promise<FileHandle>) {
  let length = 0
  return async ({ atStart, parts }: Write): Promise<void> => {
    const handle = await opening
    const bytes = Buffer.concat(parts)
    await writeFully(handle, bytes, atStart ? 0 : length)
    if (!atStart) length += bytes.length
  }
}

/** A write may be short, and says so. */
async function writeFully(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let written = 0; written < bytes.length;) {
    const result = await handle.write(bytes, written, bytes.length - written, position + written)
    written += result.bytesWritten
  }
}

async function closeFile(opening: Promise<FileHandle>): Promise<void> {
  const handle = await opening.catch(() => null)
  if (handle === null) return
  try {
    await handle.datasync()
  } finally {
    await handle.close()
  }
}
