/** Owns the recordings of tests after their calls: a real database, folder and copying thread, a storage or none, and hands to turn. */
import { readdir } from 'node:fs/promises'
import type { Test } from 'tap'
import { createRecordingKeeping } from '../../actors/after-call/recording-keeping.ts'
import { joinRecording } from '../../media/recording/joined-recording.ts'
import { createRecordingCopies } from '../../media/recording/recording-copies.ts'
import { wavHeaderOf } from '../../media/recording/wav.ts'
import { bytesOf } from '../../model/frame.ts'
import type { AccountId, CallId, WorkerId } from '../../model/ids.ts'
import { recordingKeyIn, type RecordingForm } from '../../model/recording-store.ts'
import { createRecordingBucket, type BucketSettings } from '../../store/recording-bucket.ts'
import { createRecordingFolder } from '../../store/recording-folder.ts'
import { createRecordingPlaces, readFolderId } from '../../store/recording-places.ts'
import { countRecordings } from '../../store/recording-rows.ts'
import { createFolder } from './folder.ts'
import { createAsk, insertCall, newId, openSeededApi } from './seeded-api.ts'

type Seeded = Awaited<ReturnType<typeof openSeededApi>>

/** A second of sound, another one for each number. */
export const soundOf = (number: number): Buffer => {
  const samples = Int16Array.from({ length: 16_000 }, (_, at) => Math.round(8_000 * Math.sin((at * (number + 5)) / 40)))
  return Buffer.concat([wavHeaderOf({ rateHz: 16_000, channels: 1 }, samples.length * 2), bytesOf(samples)])
}

/** One process that keeps recordings. `folder` is shared with others where it is given. */
export async function openKeeper(
  t: Test,
  { sql, hands, deps, own }: Seeded,
  storage: BucketSettings | null,
  given: { readonly folder?: string; readonly lines?: Seeded['lines'] } = {},
) {
  const folder = given.folder ?? (await createFolder(t))
  const bucket = storage && createRecordingBucket(storage, 500)
  const { clock } = hands
  const { log } = deps
  const nodeId = newId<'node'>()
  const places = createRecordingPlaces({
    sql,
    folder: createRecordingFolder({ folder, clock, log }),
    folderId: await readFolderId(folder),
    bucket,
    join: joinRecording,
    clock,
    log,
  })
  const keeping = createRecordingKeeping({ sql, clock, nodeId, log, places, copies: createRecordingCopies(clock) })
  const close = async () => {
    await keeping.close()
    await bucket?.close()
  }
  t.teardown(close)
  return {
    folder,
    places,
    keeping,
    close,
    ask: createAsk({ ...deps, recordings: places }, own.key),
    recordingsApi: { ...deps, recordings: places },
    /** Names of what is in the folder of the account. */
    files: async () => (await readdir(`${folder}/${own.id}`).catch((): string[] => [])).toSorted(),
    /** Lets the time go by in steps, with all that is due in each. */
    async passes(ms: number, step = 30_000) {
      for (let passed = 0; passed < ms; passed += step) {
        hands.turn(Math.min(step, ms - passed))
        await keeping.idle()
      }
    },
  }
}

/** A call that is over, with a recording of these bytes. */
export async function recordCall(
  { sql, own }: Seeded,
  { places }: Pick<Awaited<ReturnType<typeof openKeeper>>, 'places'>,
  bytes: Uint8Array,
  columns: Record<string, string> = {},
): Promise<{ readonly callId: CallId; readonly key: string }> {
  const callId = await insertCall(sql, own.id as AccountId, own.worker.id as WorkerId, {
    postProcessingStatus: 'completed',
    ...columns,
  })
  const key = `${own.id}/${callId}.wav`
  const writer = places.create(key)
  writer.append(bytes)
  await writer.close()
  await places.noted()
  await sql`update calls set recording_key = ${key}, recorded_ms = 1000 where id = ${callId}`
  return { callId, key }
}

export async function bytesIn(
  places: Awaited<ReturnType<typeof openKeeper>>['places'],
  key: string,
  form: RecordingForm = 'wav',
): Promise<Buffer | null> {
  const reader = await places.read(recordingKeyIn(form, key))
  return reader && Buffer.from(await new Response(reader.stream(0, reader.size - 1)).arrayBuffer())
}

/** How many recordings are in each state. */
export const statesOf = async (sql: Seeded['sql']): Promise<Record<string, number>> =>
  Object.fromEntries((await countRecordings(sql)).map(({ state, count }) => [state, count]))
