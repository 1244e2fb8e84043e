/**
 * Owns the account of refused calls: a log line for each kind, and rows for the API, written a batch at a time, because a scanner must
 * not fill the table, the log or the memory. Never throws, never waits.
 */
import type { Cancel, Clock } from '../../model/clock.ts'
import type { NewId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import { noTelemetry, type Telemetry } from '../../model/telemetry.ts'
import type { Refusal } from '../../model/telephony.ts'
import { writeRefusals } from '../../store/call-refusals.ts'
import type { Sql } from '../../store/sql.ts'
import { createRefusalCounts } from './refusal-counts.ts'

export type RefusalLog = {
  note(refusal: Refusal): void
  /** Everything noted before this call has been written, or could not be. */
  written(): Promise<void>
  /** Writes what is left. Idempotent. */
  close(): Promise<void>
}

const writeEvery = 2_000

export function createRefusalLog(deps: {
  readonly sql: Sql
  readonly clock: Clock
  readonly log: Log
  readonly newId: NewId
  readonly telemetry?: Telemetry
}): RefusalLog {
  const { sql, clock, log, newId, telemetry = noTelemetry } = deps
  const counts = createRefusalCounts()
  let closed = false
  let cancelWrite: Cancel | null = null
  let writing: Promise<void> = Promise.resolve()

  const writeLater = (): void => {
    if (!closed) cancelWrite ??= clock.after(writeEvery, () => void writeNow())
  }
  const writeNow = (): Promise<void> => {
    cancelWrite?.()
    cancelWrite = null
    return (writing = writing.then(write))
  }
  async function write(): Promise<void> {
    const dropped = counts.takeDropped()
    if (dropped > 0) log.warn('more kinds of calls were refused than can be told apart', { dropped })
    const rows = counts.take()
    try {
      if (rows.length > 0) await writeRefusals(sql, rows)
    } catch (error) {
      log.error('refused calls could not be written down', { error })
      // With the next ones: under the same ids they add up.
      counts.giveBack(rows)
      writeLater()
    }
    counts.forgetOld(clock.now())
  }

  return {
    note(refusal) {
      if (closed) return
      const { direction, reason } = refusal
      telemetry.count('call.refused', { direction, reason })
      const first = counts.add(refusal, newId(), clock.now())
      if (first) log.info('a call was refused', fieldsOf(first))
      writeLater()
    },
    written: writeNow,
    close() {
      if (closed) return writing
      closed = true
      return writeNow()
    },
  }
}

const fieldsOf = ({ address, calling, called, details, ...plain }: Refusal) => ({
  ...plain,
  personal: { address, calling, called, details },
})
