/**
 * Owns what happens to a recording after its call: its copies are made, it is shipped where there is a storage, and it is removed where that was ordered.
 * All of it is durable: a row per recording, claimed by one process of those that share its folder. The file stays in the folder until the storage
 * has shown that it has all of it.
 *
 * While the storage fails, one recording at a time is tried, with growing pauses; the others wait, and are not counted as tried. Copies are made meanwhile.
 */
import { captureType } from '../../model/call-capture.ts'
import type { Cancel, Clock } from '../../model/clock.ts'
import type { NodeId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import {
  recordingForms,
  recordingKeyIn,
  soundTypes,
  wholeKeyOf,
  type RecordingForm,
  type RecordingReader,
} from '../../model/recording-store.ts'
import type { RecordingCopies } from '../../media/recording/recording-copies.ts'
import { BucketFailure, type RecordingBucket } from '../../store/recording-bucket.ts'
import type { KnownPart, RecordingPlaces } from '../../store/recording-places.ts'
import {
  changeRecordings,
  claimRecordings,
  delayRemoval,
  anyFolder,
  findRecordings,
  forgetOldOrders,
  forgetRecording,
  noteFolder,
  noteRecordings,
  orderRemoval,
  prolongClaims,
  reopenRecordings,
  tellCallOfRecording,
  type ClaimedRecording,
  type RecordingChange,
  type RecordingRow,
} from '../../store/recording-rows.ts'
import type { Sql } from '../../store/sql.ts'
import { createTogether } from '../../store/together.ts'
import type { Rounds } from '../rounds/rounds.ts'
import { createWorkRounds } from '../rounds/work-rounds.ts'
import { playableMsOf } from './playable.ts'

const pollEvery = 2_000
const lease = 60_000
const prolongEvery = 20_000
/** Copies are made one after another; shipping is the work of the storage. */
const atOnce = { kept: 16, shipped: 4 } as const
/** Looking for a few costs as much as for many, and more room is free in a moment. */
const leastShare = 1 / 2
/** Written down in one statement, and real ms from one to the next where many are done. */
const mostTogether = 100
const pace = 50
/** Files without a row are looked for at the start, and this often: those whose process was killed, or had no database at their end. */
const lookThroughEvery = 3_600_000
/** A machine that is away for longer keeps what nobody knew of and what was to be removed. */
const ordersKeptFor = 90 * 86_400_000
/** A file that changed a moment ago may be written by another process. */
const restsFor = 60_000

/** Ms until the next try, by the tries so far; the last one goes on until it is given up. */
const pauses = [5_000, 15_000, 60_000, 300_000, 900_000] as const
export const pauseAfter = (attempts: number): number => pauses[attempts - 1] ?? pauses[pauses.length - 1]!
/** About a week. */
export const mostAttempts = 700
/** Copies are tried this often; a recording without them is a recording. */
const mostTriesOfCopies = 3
/** The same where another machine has a part of the call: more than an hour. */
const mostTriesOfParts = 8

const contentTypes: Readonly<Record<RecordingForm, string>> = {
  ...soundTypes,
  peaks: 'application/octet-stream',
  pcap: captureType,
}

export type RecordingKeepingDeps = {
  readonly sql: Sql
  readonly clock: Clock
  readonly nodeId: NodeId
  readonly log: Log
  readonly places: RecordingPlaces
  readonly copies: RecordingCopies
}

type KeepingDeps = RecordingKeepingDeps & {
  /** False: it is to be removed, or somebody else's, and stays as it was. */
  readonly change: (change: RecordingChange) => Promise<boolean>
}

export function createRecordingKeeping(given: RecordingKeepingDeps): Rounds {
  const { sql, clock, nodeId, log, places } = given
  const { folderId, bucket } = places
  const change = createTogether<RecordingChange, boolean>({
    keyOf: () => '',
    async work(changes) {
      const changed = await changeRecordings(sql, nodeId, changes)
      return changes.map(({ key }) => changed.has(key))
    },
    most: mostTogether,
    pace,
  })
  const deps: KeepingDeps = { ...given, change }
  const outage = createOutage(clock, log)
  /** Keys of what is worked on. */
  const underWay = new Set<string>()
  let lookedThroughAt = -Infinity
  let closed = false
  let cancelProlonging: Cancel = () => {}

  const begin = (row: ClaimedRecording): Promise<void> => {
    const { key, attempts } = row
    underWay.add(key)
    const work = places.during(key, (signal) => keepOne(deps, row, signal, outage))
    if (closed) places.stopAll()
    return work
      .catch((error: unknown) => log.error('the work on a recording failed', { recording: key, attempts, error }))
      .finally(() => underWay.delete(key))
  }
  const prolong = (): void => {
    cancelProlonging = clock.after(prolongEvery, prolong)
    if (underWay.size === 0) return
    prolongClaims(sql, nodeId, [...underWay], clock.now() + lease).catch((error: unknown) =>
      log.warn('claims of recordings could not be prolonged', { error }),
    )
  }
  prolong()

  const take = async (count: number) => {
    if (clock.now() - lookedThroughAt >= lookThroughEvery) {
      if (lookedThroughAt === -Infinity)
        await reopenRecordings(sql, { folder: folderId, ships: bucket !== null, now: clock.now() })
      lookedThroughAt = clock.now()
      await lookThrough(deps, () => closed)
    }
    await places.noted()
    const most = outage.isOn() ? 1 : atOnce[bucket === null ? 'kept' : 'shipped']
    const room = most - count
    if (room < most * leastShare) return { items: [], isFull: true }
    const claim = { folder: folderId, nodeId, now: clock.now(), lease }
    const rows = await claimRecordings(sql, claim, room, outage.isPausing())
    return { items: rows.filter(({ key }) => !underWay.has(key)), isFull: rows.length >= room }
  }
  const rounds = createWorkRounds({ clock, log, every: pollEvery, take, begin })
  return {
    ...rounds,
    async close() {
      closed = true
      cancelProlonging()
      places.stopAll()
      await rounds.close()
      await deps.copies.close()
      await places.noted()
    },
  }
}

/** What is known of the storage: as long as it fails, nobody asks it in vain more than once in a pause. */
function createOutage(clock: Clock, log: Log) {
  let failures = 0
  let until = -Infinity
  return {
    isOn: () => failures > 0,
    isPausing: () => clock.now() < until,
    failed(problem: string): void {
      failures++
      until = clock.now() + Math.min(pauseAfter(failures), 300_000)
      const fields = { problem, failures, nextTryInMs: until - clock.now() }
      if (failures === 1) log.error('recordings cannot be shipped and stay in their folder for now', fields)
      else log.warn('recordings still cannot be shipped', fields)
    },
    works(): void {
      if (failures > 0) log.info('recordings are shipped again', { failures })
      failures = 0
      until = -Infinity
    },
  }
}

type Outage = ReturnType<typeof createOutage>

async function keepOne(deps: KeepingDeps, row: ClaimedRecording, signal: AbortSignal, outage: Outage): Promise<void> {
  const { clock, places, log, change } = deps
  const { key } = row
  if (row.state === 'removing') return removeOne(deps, row)
  let { hasCopies } = row
  try {
    const hasSound = (await places.folder.sizeOf(key)) !== null
    const parts = row.hasParts ? await notedParts(deps, key) : null
    const isWhole = parts?.at(-1)?.key === key && !row.inStorage
    const hasCapture = async () => (await places.folder.sizeOf(recordingKeyIn('pcap', key))) !== null
    if (!hasSound && !isWhole && !(await hasCapture())) return await keepWithoutFile(deps, row)
    if (!hasCopies && parts && isWhole) await copyWhole(deps, { row, parts }, signal)
    if (!hasCopies && !parts && hasSound) await makeCopies(deps, row, signal)
    hasCopies = true
    if (row.lacksLink || isWhole) await tellCall(deps, key)
    if (places.bucket === null) {
      const isKept = await change({ key, state: 'kept', hasCopies, attempts: 0, problem: null, isOver: true })
      return isKept ? undefined : await clean(deps, row)
    }
    if (outage.isPausing()) return void (await change({ key, hasCopies, attempts: 0, isOver: true }))
    if (!(await change({ key, hasCopies, inStorage: true, isOver: false }))) return await clean(deps, row)
    await ship(places, places.bucket, key, signal)
    outage.works()
    const isShipped = await change({ key, state: 'shipped', attempts: 0, problem: null, isOver: true })
    if (!isShipped) return await clean(deps, { ...row, inStorage: true })
    await places.folder.remove(key)
  } catch (error) {
    if (signal.aborted) return void (await change({ key, hasCopies, attempts: row.attempts - 1, isOver: true }))
    const problem = error instanceof Error ? error.message : String(error)
    if (error instanceof BucketFailure) outage.failed(problem)
    else log.warn('a recording could not be kept as it is to be, and is tried again', { recording: key, error })
    const isFailed = row.attempts >= mostAttempts
    if (isFailed) log.error('a recording is not shipped: it stays in its folder', { recording: key, problem })
    const runAt = clock.now() + pauseAfter(row.attempts)
    await change({ key, state: isFailed ? 'failed' : 'waiting', hasCopies, runAt, problem, isOver: true })
  }
}

/**
 * Its file never came to be, or went with a disk. The storage may have all of it, because its process died before it could say so; a part of it is no
 * recording, and nobody would ever ask for its removal.
 */
async function keepWithoutFile(deps: KeepingDeps, row: RecordingRow): Promise<void> {
  const { sql, clock, log, places, change } = deps
  const { key, inStorage } = row
  if (inStorage && places.bucket === null)
    throw new Error('its file is gone, and the storage that may have it is not set up')
  const stored = inStorage ? await places.bucket?.read(key) : null
  const captured = stored ?? (inStorage ? await places.bucket?.read(recordingKeyIn('pcap', key)) : null)
  if (captured) {
    const recordedMs = stored ? await playableMsOf(stored) : null
    if (recordedMs !== null) await tellCallOfRecording(sql, key, recordedMs)
    const isKept = await change({ key, state: 'shipped', attempts: 0, problem: null, isOver: true })
    return isKept ? undefined : clean(deps, row)
  }
  log.warn('a recording is not in its folder', { recording: key })
  if (!inStorage) return forgetRecording(sql, key)
  await orderRemoval(sql, key, clock.now())
  await removeOne(deps, { ...row, state: 'removing' })
}

/** Those that cannot be made are done without. `whole`: what they are made of, where that is not the recording itself. */
async function makeCopies(
  { log, places, copies }: RecordingKeepingDeps,
  row: RecordingRow,
  signal: AbortSignal,
  whole: RecordingReader | null = null,
): Promise<void> {
  const pathIn = (form: RecordingForm) => places.folder.pathOf(recordingKeyIn(form, row.key))
  const make = (wav: string) => copies.make({ wav, opus: pathIn('opus'), peaks: pathIn('peaks') }, signal)
  try {
    await (whole ? places.folder.withCopy(row.key, whole, make) : make(pathIn('wav')))
  } catch (error) {
    if (signal.aborted || row.attempts < mostTriesOfCopies) throw error
    log.warn('no copies can be made of a recording', { recording: row.key, error })
  }
}

/** All of the call. What a process that was killed has left of it in this folder is noted, so that it is kept and shipped as well. */
async function notedParts({ sql, clock, places }: RecordingKeepingDeps, key: string): Promise<readonly KnownPart[]> {
  const parts = await places.partsOf(key)
  for (const part of parts)
    if (part.row === null && !places.isOpen(part.key) && (await places.folder.sizeOf(part.key)) !== null)
      await noteRecordings(sql, places.folderId, [{ key: part.key, at: clock.now() }], clock.now())
  return parts
}

type Whole = { readonly row: RecordingRow; readonly parts: readonly KnownPart[] }

/** The copies of a call with several parts are of all of it, and lie beside its last part. What other machines have of it is waited for. */
async function copyWhole(deps: RecordingKeepingDeps, { row, parts }: Whole, signal: AbortSignal): Promise<void> {
  const whole = await deps.places.read(wholeKeyOf(row.key))
  if (whole === null) return
  const isAwaited = whole.lacks?.some(({ isComing }) => isComing) === true && row.attempts < mostTriesOfParts
  if (isAwaited) throw new Error(`one of the ${parts.length} parts of the recording is not here yet`)
  await makeCopies(deps, row, signal, whole)
}

async function tellCall({ sql, places }: RecordingKeepingDeps, key: string): Promise<void> {
  const recording = await places.read(wholeKeyOf(key))
  const recordedMs = recording && (await playableMsOf(recording))
  if (recordedMs !== null) await tellCallOfRecording(sql, key, recordedMs)
}

/** What is small goes first: with the sound the recording is complete. */
async function ship(places: RecordingPlaces, bucket: RecordingBucket, key: string, signal: AbortSignal): Promise<void> {
  for (const form of recordingForms.toReversed()) {
    const one = recordingKeyIn(form, key)
    // Of a process that was killed before it wrote anything there is an empty file.
    if (((await places.folder.sizeOf(one)) ?? 0) > 0)
      await bucket.put(one, places.folder.pathOf(one), contentTypes[form], signal)
  }
}

/** Its removal was ordered while somebody was at work on it. */
async function clean(deps: RecordingKeepingDeps, row: RecordingRow): Promise<void> {
  const [now] = await findRecordings(deps.sql, [row.key])
  if (now?.state === 'removing') await removeOne(deps, now)
}

async function removeOne({ places, sql, clock }: RecordingKeepingDeps, row: RecordingRow): Promise<void> {
  if (places.isOpen(row.key)) return delayRemoval(sql, row.key, clock.now() + pollEvery, 'it is being written')
  await places.carryOut(row)
}

/** Notes what no row tells of, and removes what a process that died had shipped already, or whose removal found nothing anywhere else. */
async function lookThrough({ sql, clock, places }: RecordingKeepingDeps, isClosed: () => boolean): Promise<void> {
  await noteFolder(sql, places.folderId)
  await forgetOldOrders(sql, clock.now() - ordersKeptFor)
  for await (const found of places.folder.list()) {
    if (isClosed()) return
    const known = await findRecordings(sql, [...new Set(found.flatMap(({ key }) => [key, wholeKeyOf(key)]))])
    const removed = new Set(known.flatMap(({ key, folder }) => (folder === anyFolder ? [key] : [])))
    const shipped = new Set(known.flatMap(({ key, state }) => (state === 'shipped' ? [key] : [])))
    for (const { key } of found)
      if (shipped.has(key) || removed.has(key) || removed.has(wholeKeyOf(key))) await places.folder.remove(key)
    // What was only begun is complete once its process is gone.
    const noted = new Set(
      known.flatMap(({ key, attempts, state }) => (attempts > 0 || state !== 'waiting' ? [key] : [])),
    )
    const resting = found.filter(({ key, at }) => !noted.has(key) && !places.isOpen(key) && clock.now() - at > restsFor)
    await noteRecordings(sql, places.folderId, resting, clock.now())
  }
}
