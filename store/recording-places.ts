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
import {
  byBeginning,
  recordingForms,
  recordingKeyIn,
  recordingOfKey,
  wholeKeyOf,
  type JoinRecording,
  type ReadPart,
  type RecordingReader,
  type RecordingStore,
  type Removal,
} from '../model/recording-store.ts'
import { BucketFailure, type RecordingBucket } from './recording-bucket.ts'
import type { RecordingFolder } from './recording-folder.ts'
import {
  anyFolder,
  beginParts,
  delayRemoval,
  findWholeRecordings,
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
  /** Every part of the recording of this call that is known of, in order; a single one is all of it. */
  partsOf(key: string): Promise<readonly KnownPart[]>
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

/** `row` null: whoever wrote it was killed, or writes it still; or it never was. */
export type KnownPart = { readonly key: string; readonly row: RecordingRow | null }

export type RecordingPlacesDeps = {
  readonly sql: Sql
  readonly folder: RecordingFolder
  readonly folderId: string
  readonly bucket: RecordingBucket | null
  readonly join: JoinRecording
  readonly clock: Clock
  readonly log: Log
}

/** Ms between two tries to remove what cannot be reached. */
const removedAgainAfter = 60_000
/** Noted in one statement, and real ms from one to the next where many end. */
const mostTogether = 100
const pace = 100

export function createRecordingPlaces(deps: RecordingPlacesDeps): RecordingPlaces {
  const { sql, folder, folderId, bucket, join, clock, log } = deps
  /** By the key of the sound: the files of it that are written. */
  const writing = new Map<string, number>()
  const noting = new Set<Promise<void>>()
  const working = createWorkings()

  const findRows = createOneQuery<string, readonly RecordingRow[]>({
    keyOf: (key) => key,
    query: (keys) => findWholeRecordings(sql, keys),
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
  /** One that cannot be told of now is when it is complete. */
  const begin = (key: string): void => {
    const begun = beginParts(sql, folderId, [{ key, at: clock.now() }], clock.now())
      .catch((error: unknown) => log.warn('a part of a recording could not be noted yet', { recording: key, error }))
      .finally(() => noting.delete(begun))
    noting.add(begun)
  }
  const beginWriting = (written: string) => {
    const key = recordingKeyIn('wav', written)
    writing.set(key, (writing.get(key) ?? 0) + 1)
    if (recordingOfKey(key).from !== null) begin(key)
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
  const partsOf = async (key: string): Promise<readonly KnownPart[]> => {
    const whole = wholeKeyOf(key)
    const rows = (await findRows(whole)) ?? []
    const keys = new Set([whole, ...rows.map((row) => row.key)])
    return [...keys]
      .toSorted(byBeginning)
      .map((part) => ({ key: part, row: rows.find((row) => row.key === part) ?? null }))
  }
  const readOne = async (key: string, row: RecordingRow | null): Promise<RecordingReader | null> => {
    const local = await folder.read(key)
    if (local !== null || row?.state !== 'shipped' || bucket === null) return local
    return bucket.read(key).catch(away)
  }
  const readPart = async ({ key, row }: KnownPart): Promise<ReadPart> => ({
    from: recordingOfKey(key).from ?? 0,
    reader: await readOne(key, row),
    isComing: row !== null && row.folder !== folderId && row.state !== 'shipped',
  })
  /** What was on its way to the storage may arrive behind its removal. */
  const onceMore = async (key: string): Promise<Removal> => {
    await folder.remove(key)
    const problem = await removeFrom(bucket, key)
    await delayRemoval(sql, key, clock.now() + removedAgainAfter, problem ?? 'removed; to be made sure of once more')
    return 'ordered'
  }
  const removeOne = async (sound: string): Promise<Removal> => {
    const now = clock.now()
    if (writing.has(sound)) await orderRemovalAhead(sql, folderId, sound, now)
    const row = await orderRemoval(sql, sound, now)
    const wasBusy = await working.stop(sound)
    if (row === null) return removeUnknown(deps, sound)
    if (row.claimedBy !== null && !wasBusy) return laterIn(folder, sound)
    if (wasBusy && row.inStorage) return onceMore(sound)
    return (await carryOut(row)) ? 'removed' : 'ordered'
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
    partsOf,
    async read(key) {
      const { form } = recordingOfKey(key)
      const known = await partsOf(key)
      if (known[0]?.row?.state === 'removing') return null
      const parts = known.filter(({ row }) => row?.state !== 'removing')
      const of = form === 'pcap' ? parts[0] : parts.at(-1)
      if (form === 'wav' && parts.length > 1) return join(await Promise.all(parts.map(readPart)))
      return of ? readOne(recordingKeyIn(form, of.key), of.row) : null
    },
    async remove(key) {
      const whole = wholeKeyOf(key)
      const written = [...writing.keys()].filter((open) => wholeKeyOf(open) === whole)
      const keys = new Set([...(await partsOf(key)).map((part) => part.key), ...written])
      const removals: Removal[] = []
      for (const sound of keys) removals.push(await removeOne(sound))
      if (removals.includes('ordered')) return 'ordered'
      return removals.includes('removed') ? 'removed' : 'absent'
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
