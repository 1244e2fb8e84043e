/** Owns where the recordings of this process go: the folder, the storage behind it, and the work on them after their calls. */
import { createRecordingKeeping } from '../actors/after-call/recording-keeping.ts'
import { joinRecording } from '../media/recording/joined-recording.ts'
import { createRecordingCopies } from '../media/recording/recording-copies.ts'
import type { Clock } from '../model/clock.ts'
import type { NodeId } from '../model/ids.ts'
import type { Log } from '../model/log.ts'
import type { RecordingStore } from '../model/recording-store.ts'
import { createRecordingBucket } from '../store/recording-bucket.ts'
import { createRecordingFolder } from '../store/recording-folder.ts'
import { createRecordingPlaces, readFolderId, type RecordingPlaces } from '../store/recording-places.ts'
import { anyFolder } from '../store/recording-rows.ts'
import type { Sql } from '../store/sql.ts'
import type { Config } from './config.ts'

type Given = { readonly sql: Sql; readonly nodeId: NodeId; readonly clock: Clock; readonly log: Log }

/** For a process that reads some and does nothing else to them. */
export function openRecordingsToRead(
  { recordingsDir, recordingsBucket }: Config,
  given: Omit<Given, 'nodeId'>,
  closing: AsyncDisposableStack,
): Pick<RecordingStore, 'read'> {
  const bucket = recordingsBucket && createRecordingBucket(recordingsBucket)
  closing.defer(() => bucket?.close())
  const folder = createRecordingFolder({ folder: recordingsDir, ...given })
  return createRecordingPlaces({ ...given, folder, folderId: anyFolder, bucket, join: joinRecording })
}

/** The folder is there. */
export async function openRecordings(
  config: Config,
  given: Given,
  closing: AsyncDisposableStack,
): Promise<RecordingPlaces> {
  const { recordingsDir, recordingReserve, recordingsBucket } = config
  const bucket = recordingsBucket && createRecordingBucket(recordingsBucket)
  closing.defer(() => bucket?.close())
  const folder = createRecordingFolder({ folder: recordingsDir, reserve: recordingReserve, ...given })
  const folderId = await readFolderId(recordingsDir)
  const places = createRecordingPlaces({ ...given, folder, folderId, bucket, join: joinRecording })
  const keeping = createRecordingKeeping({ ...given, places, copies: createRecordingCopies(given.clock) })
  closing.defer(() => keeping.close())
  keeping.wake()
  return places
}
