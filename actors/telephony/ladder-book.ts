/**
 * Owns writing down the signaling of calls that are over: several calls in one statement, one statement at a time, behind everything else. What does
 * not fit, or cannot be written, is lost.
 */
import { pause, type Clock } from '../../model/clock.ts'
import type { CallId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import type { MessageLadder } from '../../model/message-ladder.ts'
import { writeLadders } from '../../store/call-messages.ts'
import type { Sql } from '../../store/sql.ts'

export type LadderBook = {
  /** Never throws, never waits. */
  add(callId: CallId, ladder: MessageLadder): void
  /** Of what was added all is written, or could not be. Idempotent. */
  close(): Promise<void>
}

/** Calls. */
const maxWaiting = 500
const mostTogether = 50
/** Ms in which more may come before a statement; with as many as it takes nothing is waited for. */
const pace = 1_000

type Deps = { readonly sql: Sql; readonly clock: Clock; readonly log: Log }

export function createLadderBook({ sql, clock, log }: Deps): LadderBook {
  let waiting: (readonly [CallId, MessageLadder])[] = []
  const closing = new AbortController()
  let full = new AbortController()
  let writing: Promise<void> | null = null
  let lost = 0

  const more = async (): Promise<void> => {
    full = new AbortController()
    if (waiting.length < mostTogether) await pause(clock, pace, AbortSignal.any([closing.signal, full.signal]))
  }
  /** Once for all that were lost during a statement, however fast they come. */
  const tellLost = (): void => {
    if (lost > 0) log.warn('signaling messages of calls are not kept: too many wait', { calls: lost })
    lost = 0
  }
  const writeAll = async (): Promise<void> => {
    while (waiting.length > 0) {
      if (!closing.signal.aborted) await more()
      const some = waiting.slice(0, mostTogether)
      waiting = waiting.slice(mostTogether)
      await writeLadders(sql, some).catch((error: unknown) =>
        log.warn('signaling messages of calls could not be written', { calls: some.length, error }),
      )
      tellLost()
    }
    writing = null
  }
  return {
    add(callId, ladder) {
      if (ladder.entries.length === 0) return
      if (waiting.length >= maxWaiting) return void lost++
      waiting.push([callId, ladder])
      if (waiting.length >= mostTogether) full.abort()
      writing ??= writeAll()
    },
    async close() {
      closing.abort()
      await writing
    },
  }
}
