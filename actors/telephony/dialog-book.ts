/**
 * Owns writing down which dialogs this node has: behind the calls, never in their way. What comes while a statement is under way goes with the next
 * one; what began and ended meanwhile is not written at all. While the database is away it is tried again for as long as it is true; what the database
 * refuses is dropped, and keeps nothing else from being written.
 */
import { pause, type Clock } from '../../model/clock.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import type { Dialogs } from '../../model/telephony.ts'
import { leaveDialogs, writeDialogs, type HeldDialog } from '../../store/sip-dialogs.ts'
import { databaseUnreachable } from '../../store/database-unreachable.ts'
import type { Sql } from '../../store/sql.ts'

export type DialogBook = Pick<Dialogs, 'held' | 'over'> & {
  /** There is a row of this node, which it did not write. */
  inherited(callId: CallId): void
  /** They are whoever's inherits them; nothing more is told of them here. Rejects when that cannot be written down. */
  leave(callIds: readonly CallId[]): Promise<void>
  /** What was told so far is written, or could not be. Later news is not. Idempotent. */
  close(): Promise<void>
}

/** Null: it is over. */
type News = readonly [CallId, HeldDialog | null]

type Deps = { readonly sql: Sql; readonly clock: Clock; readonly nodeId: NodeId; readonly log: Log }

/** Of one statement. */
const mostTogether = 100
/** Real ms from the beginning of one statement to that of the next, where many calls begin and end. Who comes alone waits for nothing. */
const pace = 150
/** Calls; far more than a node has. News of more is lost. */
const maxWaiting = 20_000
/** Ms. */
const firstRetry = 250
const slowestRetry = 4_000

export function createDialogBook({ sql, clock, nodeId, log }: Deps): DialogBook {
  const news = new Map<CallId, News[1]>()
  /** A row may be there. */
  const written = new Set<CallId>()
  let writing: Promise<void> | null = null
  let began = -Infinity
  const closing = new AbortController()

  const note = (callId: CallId, held: HeldDialog | null): void => {
    if (closing.signal.aborted) return
    if (held === null && !written.has(callId)) return void news.delete(callId)
    if (news.size < maxWaiting || news.has(callId)) news.set(callId, held)
    // After everything that had already arrived in this turn of the event loop.
    writing ??= new Promise<void>(setImmediate).then(writeAll)
  }
  const write = async (some: readonly News[]): Promise<void> => {
    const held = some.flatMap(([, dialog]) => dialog ?? [])
    for (const { callId } of held) written.add(callId)
    const over = some.flatMap(([callId, dialog]) => (dialog ? [] : [callId]))
    await writeDialogs(sql, nodeId, { held, over })
    some.forEach(done)
    for (const callId of over) if (!news.has(callId)) written.delete(callId)
  }
  const done = ([callId, dialog]: News): void => void (news.get(callId) === dialog && news.delete(callId))
  /** Of those that were refused together: which one is meant? */
  const writeEach = async (some: readonly News[], refusal: unknown): Promise<void> => {
    if (databaseUnreachable(refusal)) throw refusal
    for (const one of some)
      await write([one]).catch((error: unknown) => {
        if (databaseUnreachable(error)) throw error
        done(one)
        log.error('the dialog of a call cannot be written down', { callId: one[0], error })
      })
  }
  const writeAll = async (): Promise<void> => {
    let wait = firstRetry
    while (news.size > 0) {
      const early = began + pace - performance.now()
      if (early > 0) await pause(clock, early, closing.signal)
      began = performance.now()
      const some = [...news].slice(0, mostTogether)
      try {
        await write(some).catch((error: unknown) => writeEach(some, error))
        wait = firstRetry
      } catch (error) {
        log.warn('dialogs of calls could not be written down', { dialogs: some.length, error })
        if (!(await pause(clock, wait, closing.signal))) break
        wait = Math.min(wait * 2, slowestRetry)
      }
    }
    writing = null
  }
  return {
    held: (callId, trunkId, dialog) => note(callId, { callId, trunkId, dialog }),
    over: (callId) => note(callId, null),
    inherited: (callId) => void written.add(callId),
    async leave(callIds) {
      await writing
      for (const callId of callIds) {
        news.delete(callId)
        written.delete(callId)
      }
      await leaveDialogs(sql, nodeId, callIds)
    },
    async close() {
      closing.abort()
      await writing
    },
  }
}
