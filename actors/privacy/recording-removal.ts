/**
 * Owns that recordings which were ordered to be removed are: at once where that can be, else by a later round. Several processes may do this at
 * the same time; one storage that is away holds up no other.
 */
import type { Clock } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import type { RecordingStore } from '../../model/recording-store.ts'
import {
  finishRecordingRemoval,
  listRecordingRemovals,
  postponeRecordingRemoval,
} from '../../store/recording-removals.ts'
import type { Sql } from '../../store/sql.ts'

const atOnce = 100

export type RecordingRemoval = {
  /** The oldest orders, `limit` at most; how many are done. Rejects only with the database. */
  (limit?: number): Promise<number>
}

export function createRecordingRemoval(deps: {
  readonly sql: Sql
  /** Null: another process removes them. */
  readonly recordings: Pick<RecordingStore, 'remove'> | null
  readonly clock: Pick<Clock, 'now'>
  readonly log: Log
}): RecordingRemoval {
  const { sql, recordings, clock, log } = deps
  if (recordings === null) return () => Promise.resolve(0)
  const remove = async (key: string): Promise<boolean> => {
    try {
      await recordings.remove(key)
    } catch (error) {
      log.warn('a recording could not be removed and is tried again', { recording: key, error })
      await postponeRecordingRemoval(sql, key, clock.now())
      return false
    }
    await finishRecordingRemoval(sql, key)
    return true
  }
  return async (limit = atOnce) => {
    let removed = 0
    for (const key of await listRecordingRemovals(sql, limit)) removed += Number(await remove(key))
    return removed
  }
}
