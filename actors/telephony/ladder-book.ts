/**
 * Owns writing down the SIP messages of calls that are over: several calls in one statement, one statement at a time, behind everything else. What does
 * not fit, or cannot be written, is lost.
 */
import { pause, type Clock } from '../../model/clock.ts'
import type { CallId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import type { SipLadder } from '../../model/sip-ladder.ts'
import { writeLadders } from '../../store/call-messages.ts'
import type { Sql } from '../../store/sql.ts'

export type LadderBook = {
  /** Never throws, never waits. */
  add(callId: CallId, ladder: SipLadder): void
  /** Of what was added all is written, or could not be. Idempotent. */
  close(): Promise<void>
}

/** Calls. */
const maxWaiting = 500
const mostTogether = 20
/** Ms in which more may come, before a statement. */
const pace = 1_000

type Deps = { readonly sql: Sql; readonly clock: Clock; readonly log: Log }

export function createLadderBook({ sql, clock, log }: Deps): LadderBook {
  const waiting = new Map<CallId, SipLadder>()
  const closing = new AbortController()
  let writing: Promise<void> | null = null

  const writeAll = async (): Promise<void> => {
    while (waiting.size > 0) {
      if (!closing.signal.aborted) await pause(clock, pace, closing.signal)
      const some = [...waiting].slice(0, mostTogether)
      for (const [callId] of some) waiting.delete(callId)
      await writeLadders(sql, some).catch((error: unknown) =>
        log.warn('SIP messages of calls could not be written', { calls: some.length, error }),
      )
    }
    writing = null
  }
  return {
    add(callId, ladder) {
      if (ladder.entries.length === 0) return
      if (waiting.size >= maxWaiting) return log.warn('SIP messages of a call are not kept: too many wait', { callId })
      waiting.set(callId, ladder)
      writing ??= writeAll()
    },
    async close() {
      closing.abort()
      await writing
    },
  }
}
