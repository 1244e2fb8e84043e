/**
 * Owns the writing of one recording while its call runs: audio never waits for the disk, and the file stays readable when the
 * process is killed (at most the last tenth of a second is lost). Sound for which the disk has no room is left out, and the file goes on
 * behind it when there is room again: what is left out is a hole, which reads as silence and takes no room.
 */
import type { FileHandle } from 'node:fs/promises'
import type { Cancel, Clock } from '../model/clock.ts'
import { atOnce, type InTurn } from '../model/in-turn.ts'
import type { Log } from '../model/log.ts'
import type { RecordingWriter } from '../model/recording-store.ts'

/** Two minutes of split sound: a disk that slow does not come back in time. */
const maxBacklogBytes = 8 << 20
/** What comes together is written together: sound, and the header behind it that tells of it. */
const flushDelay = 100
const blockBytes = 64 << 10
/** 2 MB. */
const keptBlocks = 32

export type RecordingWriterDeps = {
  /**
   * The empty file: asked when there is something to write, and again where the disk had no room for it. Any other rejection is logged, and the recording
   * is lost.
   */
  readonly open: () => Promise<FileHandle>
  /** False: the rest of the disk is for others. */
  readonly hasRoom?: () => Promise<boolean>
  readonly pool?: BlockPool
  /** Those of many recordings may become due in one moment; absent: at once. */
  readonly inTurn?: InTurn
  readonly clock: Clock
  readonly log: Log
}

/**
 * Waiting: the backlog fills and a timer runs. Flushing: one chain writes until the backlog is empty. Given up (the backlog was full,
 * or the disk failed): everything new is ignored, and what was written stays.
 */
export function createRecordingWriter(deps: RecordingWriterDeps): RecordingWriter {
  const { clock, log, inTurn = atOnce } = deps
  const backlog = createBacklog(deps.pool ?? createBlockPool())
  const file = createSequentialFile(deps)
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
        await file.write(next)
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
    if (backlog.bytes() >= blockBytes) void flush()
    else cancelTimer ??= clock.after(flushDelay, () => inTurn(() => void flush()))
  }
  const close = async () => {
    while (backlog.bytes() > 0) await flush()
    cancelTimer?.()
    await file.close().catch(fail)
  }
  return {
    append: (bytes) => enqueue(false, bytes),
    overwriteStart: (bytes) => enqueue(true, bytes),
    close: () => (closed ??= close()),
    isWhole: () => accepting && !file.hasHoles(),
  }
}

/** Bytes for the end, or `atStart` for the beginning. */
type Write = { readonly atStart: boolean; readonly bytes: Uint8Array; readonly block: Uint8Array | null }

/** What waits, and how much is not on disk yet. What is for the beginning goes behind what is for the end, and only once: it is overwritten anyway. */
function createBacklog(pool: BlockPool) {
  let blocks: { readonly block: Uint8Array; used: number }[] = []
  let start: Uint8Array | null = null
  let bytes = 0
  /** The beginning of the file is in the first block still. */
  let isFresh = true

  const overwrite = (added: Uint8Array): void => {
    const [first] = blocks
    if (isFresh && first && first.used >= added.length) return first.block.set(added)
    bytes -= start?.length ?? 0
    start = Buffer.concat([added, start?.subarray(added.length) ?? noBytes])
    bytes += start.length
  }
  const append = (added: Uint8Array): void => {
    for (let from = 0; from < added.length;) {
      let last = blocks.at(-1)
      if (last === undefined || last.used === blockBytes) blocks.push((last = { block: pool.take(), used: 0 }))
      const count = Math.min(blockBytes - last.used, added.length - from)
      last.block.set(count === added.length ? added : added.subarray(from, from + count), last.used)
      last.used += count
      from += count
    }
    bytes += added.length
  }
  const clear = (): void => {
    for (const { block } of blocks) pool.give(block)
    blocks = []
    start = null
  }
  return {
    bytes: () => bytes,
    /** Copies: the caller may use its own again at once. */
    add: (atStart: boolean, added: Uint8Array) => (atStart ? overwrite(added) : append(added)),
    take(): Write[] {
      const taken: Write[] = blocks.map(({ block, used }) => ({
        atStart: false,
        bytes: block.subarray(0, used),
        block,
      }))
      if (start) taken.push({ atStart: true, bytes: start, block: null })
      blocks = []
      start = null
      isFresh = false
      return taken
    },
    written({ bytes: { length }, block }: Write) {
      bytes -= length
      if (block) pool.give(block)
    },
    clear() {
      clear()
      bytes = 0
    },
  }
}

/** Memory that all recordings of a folder share, because each needs it for a moment only. */
export type BlockPool = { readonly take: () => Uint8Array; readonly give: (block: Uint8Array) => void }

export function createBlockPool(): BlockPool {
  const free: Uint8Array[] = []
  return {
    take: () => free.pop() ?? new Uint8Array(blockBytes),
    give: (block) => void (free.length < keptBlocks && free.push(block)),
  }
}

const noBytes = new Uint8Array(0)

/** One at a time: the caller waits for the last write before the next. */
function createSequentialFile({ open, hasRoom, log }: RecordingWriterDeps) {
  let length = 0
  let isFull = false
  let hasHoles = false
  let handle: Promise<FileHandle | null> | null = null
  /** Null: there is no room for it. */
  const opened = async (): Promise<FileHandle | null> => {
    if (handle === null || (await handle) === null) handle = open().catch(noRoom)
    return handle
  }
  /** The beginning has its room already. */
  const write = async ({ atStart, bytes }: Write): Promise<void> => {
    const position = atStart ? 0 : length
    if (!atStart) length += bytes.length
    const isWritten = (atStart || (await (hasRoom?.() ?? true))) && (await writeFully(await opened(), bytes, position))
    if (!isWritten && !isFull) log.error('the disk has no room for a recording', {})
    if (isWritten && isFull && !atStart) log.warn('a recording goes on after a gap', {})
    if (!isWritten) hasHoles = true
    if (!isWritten || !atStart) isFull = !isWritten
  }
  const close = async (): Promise<void> => {
    // To which nothing was written it is empty.
    const file = await (handle ?? opened())
    if (file === null) return
    try {
      // Its end may be a hole.
      if (hasHoles) await file.truncate(length)
      await file.datasync()
    } finally {
      await file.close()
    }
  }
  return { write, close, hasHoles: () => hasHoles }
}

/** A write may be short, and says so. False: the disk is full. */
async function writeFully(handle: FileHandle | null, bytes: Uint8Array, position: number): Promise<boolean> {
  if (handle === null) return false
  try {
    for (let written = 0; written < bytes.length;) {
      const result = await handle.write(bytes, written, bytes.length - written, position + written)
      written += result.bytesWritten
    }
    return true
  } catch (error) {
    noRoom(error)
    return false
  }
}

/** Of the disk, or of what this user may have of it. Any other error is thrown. */
function noRoom(error: unknown): null {
  if (error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')) return null
  throw error
}
