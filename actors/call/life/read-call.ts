/** Owns reading of what a running call needs, for those who carry out its effects. */
import type { Clock } from '../../../model/clock.ts'
import { inSpokenOrder } from '../../../model/spoken-order.ts'
import type { CallId } from '../../../model/ids.ts'
import { retry } from '../../../model/retry.ts'
import type { CallFactsRow } from '../../../store/call-rows.ts'
import { findPinnedScript, type ScriptQuestion } from '../../../store/documents.ts'
import type { Lookup } from '../../../store/one-query.ts'
import { findToolCalls } from '../../../store/call-steps.ts'
import { quickReads } from '../../../store/quick-reads.ts'
import type { Sql } from '../../../store/sql.ts'
import { listFoundTurns, listTurns } from '../../../store/transcripts.ts'
import type { Said } from '../../../model/voice-engine.ts'

/** Turns that an engine which goes on is told of. */
const maxHistory = 200

type Deps = { readonly sql: Sql; readonly clock: Clock }

/** Throws for a call that is not there: it is running. */
export function readCall(
  { findCall, clock }: Pick<Deps, 'clock'> & { readonly findCall: Lookup<CallId, CallFactsRow> },
  callId: CallId,
): Promise<CallFactsRow> {
  return retry(quickReads(clock), async (): Promise<CallFactsRow> => {
    const call = await findCall(callId)
    if (!call) throw new Error('a running call has no row')
    return call
  })
}

/** The pinned scripts, as long as one of them is left; else those of the worker. Null: it has none. */
export function readScript(
  { sql, findScript, clock }: Deps & { readonly findScript: Lookup<ScriptQuestion, string> },
  { accountId, workerId, direction, scriptIds }: CallFactsRow,
): Promise<string | null> {
  return retry(quickReads(clock), async () => {
    const pinned = scriptIds.length === 0 ? null : await findPinnedScript(sql, accountId, scriptIds)
    return pinned ?? findScript({ accountId, workerId, direction })
  })
}

/** The tools behind these ids, as they were called, and whether somebody was about to be asked. */
export function readLostTools({ sql, clock }: Deps, callId: CallId, ids: readonly string[]) {
  return retry(quickReads(clock), () => findToolCalls(sql, callId, ids))
}

/** What was said in the call, by its first `count` turns. `agentUntil`: when the last turn of the agent began, ms since the answer; absent: it has none. */
export function readHistory(
  { sql, clock }: Deps,
  { id, accountId }: CallFactsRow,
  count: number,
): Promise<{ readonly said: Said[]; readonly agentUntil?: number }> {
  return retry(quickReads(clock), async () => {
    const [all, found] = await Promise.all([listTurns(sql, accountId, id), listFoundTurns(sql, id)])
    const before = all.filter(({ turnIndex }) => turnIndex < count)
    const turns = inSpokenOrder(before, found)
    const last = turns.findLast(({ role }) => role === 'agent')
    const said = turns.slice(-maxHistory).map(({ role, text }) => ({ role, text }))
    return { said, ...(last && { agentUntil: last.from }) }
  })
}
