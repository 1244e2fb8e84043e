/**
 * Owns recordings wherever they are: written to the folder first, and read from there while they are in it; from the storage when they have been shipped.
 * What is still to be done with each is a row (recording-rows.ts), which is written when its file is complete.
 */
import { randomUUID } from 'node:crypto'
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Clock } from '../model/clock.ts'
import type { Log } from '../model/log.ts'
import { Problem } from '../model/problem.ts'
import { recordingForms, recordingKeyIn, type Removal, type RecordingStore } from '../model/recording-store.ts'
import { BucketFailure, type RecordingBucket } from './recording-bucket.ts'
import type { RecordingFolder } from './recording-folder.ts'
import {
  anyFolder,
  delayRemoval,
  findRecordings,
  forgetRecording,
  noteRecordings,
  orderElsewhere,
  orderRemoval,
  orderRemovalAhead,
  type RecordingRow,
} from './recording-rows.ts'
import { createOneQuery } from './one-query.ts'
import type { Sql } from './sql.ts'
import { createTogether } from './together.ts'

export type RecordingPlaces = RecordingStore & {
  readonly folder: RecordingFolder
  readonly folderId: string
  /** Null: the folder is all there is. */
  readonly bucket: RecordingBucket | null
  /** It is written into the folder by somebody else of this process; the result tells that it is complete. */
  beginWriting(key: string): () => void
  /** Is it being written by this process? */
  isOpen(key: string): boolean
  /** Work on a recording; its signal ends it, because the recording is to be removed or the process ends. One at a time for each. */
  during(key: string, work: (signal: AbortSignal) => Promise<void>): Promise<void>
  /** Carries an order out. False: not all of it yet; it stays. */
  carryOut(row: Pick<RecordingRow, 'key' | 'folder' | 'state' | 'inStorage'>): Promise<boolean>
  /** Ends what `during` has under way; nothing is to be removed. */
  stopAll(): void
  /** Resolves when every file that is complete by now has its row. */
  noted(): Promise<void>
}

export type RecordingPlacesDeps = {
  readonly sql: Sql
  readonly folder: RecordingFolder
  readonly folderId: string
  readonly bucket: RecordingBucket | null
  readonly clock: Clock
  readonly log: Log
}

/** Ms between two tries to remove what cannot be reached. */
const removedAgainAfter = 60_000
/** Noted in one statement, and real ms from one to the next where many end. */
const mostTogether = 100
const pace = 100

export function createRecordingPlaces(deps: RecordingPlacesDeps): RecordingPlaces {
  const { sql, folder, folderId, bucket, clock, log } = deps
  /** By the key of the sound: the files of it that are written. */
  const writing = new Map<string, number>()
  const noting = new Set<Promise<void>>()
  const working = createWorkings()

  const findRecording = createOneQuery<string, RecordingRow>({
    keyOf: (key) => key,
    query: async (keys) => new Map((await findRecordings(sql, keys)).map((row) => [row.key, row])),
  })
  const noteTogether = createTogether<{ readonly key: string; readonly at: number }, void>({
    keyOf: () => '',
    async work(written) {
      await noteRecordings(sql, folderId, written, clock.now())
      return written.map(() => undefined)
    },
    most: mostTogether,
    pace,
  })
  /** A row that cannot be written is written when the folder is looked through. */
  const note = (key: string): void => {
    const noted = noteTogether({ key, at: clock.now() })
      .catch((error: unknown) => log.error('a recording could not be noted', { recording: key, error }))
      .finally(() => noting.delete(noted))
    noting.add(noted)
  }
  const beginWriting = (written: string) => {
    const key = recordingKeyIn('wav', written)
    writing.set(key, (writing.get(key) ?? 0) + 1)
    return () => {
      const left = (writing.get(key) ?? 1) - 1
      if (left > 0) return void writing.set(key, left)
      writing.delete(key)
      note(key)
    }
  }
  const carryOut: RecordingPlaces['carryOut'] = async ({ key, folder: owner, state, inStorage }) => {
    await folder.remove(key)
    if (writing.has(key)) return false
    const problem = inStorage ? await removeFrom(bucket, key) : null
    const isElsewhere = owner !== folderId && state !== 'shipped'
    if (problem !== null) await delayRemoval(sql, key, clock.now() + removedAgainAfter, problem)
    if (problem !== null || isElsewhere) return false
    if (!(await orderElsewhere(sql, folderId, key, clock.now()))) await forgetRecording(sql, key)
    return true
  }
  /** What was on its way to the storage may arrive behind its removal. */
  const onceMore = async (key: string): Promise<Removal> => {
    await folder.remove(key)
    const problem = await removeFrom(bucket, key)
    await delayRemoval(sql, key, clock.now() + removedAgainAfter, problem ?? 'removed; to be made sure of once more')
    return 'ordered'
  }
  return {
    folder,
    folderId,
    bucket,
    beginWriting,
    create(key) {
      const writer = folder.create(key)
      const ended = beginWriting(key)
      const close = async () => {
        try {
          await writer.close()
        } finally {
          ended()
        }
      }
      let closed: Promise<void> | null = null
      return { ...writer, close: () => (closed ??= close()) }
    },
    async read(key) {
      const row = await findRecording(recordingKeyIn('wav', key))
      if (row?.state === 'removing') return null
      const local = await folder.read(key)
      if (local !== null || row?.state !== 'shipped' || bucket === null) return local
      return bucket.read(key).catch(away)
    },
    async remove(key) {
      const sound = recordingKeyIn('wav', key)
      const now = clock.now()
      if (writing.has(sound)) await orderRemovalAhead(sql, folderId, sound, now)
      const row = await orderRemoval(sql, sound, now)
      const wasBusy = await working.stop(sound)
      if (row === null) return removeUnknown(deps, sound)
      if (row.claimedBy !== null && !wasBusy) return laterIn(folder, sound)
      if (wasBusy && row.inStorage) return onceMore(sound)
      return (await carryOut(row)) ? 'removed' : 'ordered'
    },
    isOpen: (key) => writing.has(key),
    during: working.during,
    stopAll: working.stopAll,
    carryOut,
    async noted() {
      while (noting.size > 0) await Promise.all(noting)
    },
  }
}

/** A machine that died before it could note the recording may come back with it, or with a part of it. */
async function removeUnknown({ sql, folder, folderId, clock }: RecordingPlacesDeps, key: string): Promise<Removal> {
  const removal = await folder.remove(key)
  if (removal === 'absent') await orderRemovalAhead(sql, anyFolder, key, clock.now())
  else await orderElsewhere(sql, folderId, key, clock.now())
  return removal
}

/** Another process is at work on it, and sees the order when it is done. */
async function laterIn(folder: RecordingFolder, key: string): Promise<Removal> {
  await folder.remove(key)
  return 'ordered'
}

/** Null: every form of it is gone. */
async function removeFrom(bucket: RecordingBucket | null, key: string): Promise<string | null> {
  if (bucket === null) return 'RECORDINGS_URL is not set, and the recording is in the storage'
  try {
    await Promise.all(recordingForms.map((form) => bucket.remove(recordingKeyIn(form, key))))
    return null
  } catch (error) {
    if (error instanceof BucketFailure) return error.message
    throw error
  }
}

function away(error: unknown): never {
  if (!(error instanceof BucketFailure)) throw error
  throw withCause(
    new Problem('SERVICE_UNAVAILABLE', 'The storage of recordings cannot be reached; try again later.'),
    error,
  )
}

const withCause = (problem: Problem, cause: unknown): Problem => Object.assign(problem, { cause })

/** What this process is doing with recordings. */
function createWorkings() {
  const workings = new Map<string, { readonly abort: AbortController; readonly done: Promise<void> }>()
  return {
    during(key: string, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
      const abort = new AbortController()
      const done = work(abort.signal).finally(() => workings.delete(key))
      workings.set(key, { abort, done })
      return done
    },
    stopAll(): void {
      for (const { abort } of workings.values()) abort.abort()
    },
    /** False: there was none. */
    async stop(key: string): Promise<boolean> {
      const working = workings.get(key)
      working?.abort.abort()
      await working?.done.catch(() => undefined)
      return working !== undefined
    },
  }
}

export const folderIdFile = '.folder-id'

/** By which processes know that they share a folder, on whatever machine. Made when there is none. */
export async function readFolderId(folder: string): Promise<string> {
  const file = path.join(folder, folderIdFile)
  const own = `${file}.${randomUUID()}`
  try {
    await writeFile(own, `${randomUUID()}\n`, { mode: 0o600 })
    await link(own, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await rm(own, { force: true })
  }
  return (await readFile(file, 'utf8')).trim()
}
