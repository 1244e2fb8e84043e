/**
 * Owns what is known here of calls that began while the database was away, until they are written: the row that it will be, changed by each step as the
 * database would change it.
 */
import type { CallId } from '../../model/ids.ts'
import type { CallFactsRow } from '../../store/call-rows.ts'
import { keyOfScriptQuestion, type ScriptQuestion } from '../../store/documents.ts'
import type { MatchingSubscription } from '../../store/subscriptions.ts'
import type { CallStep } from '../../store/write-steps.ts'

/** What the call would be told by the database. */
export type Unwritten = {
  readonly facts: CallFactsRow
  readonly script: string | null
  /** Who is asked before it begins; null: nobody. */
  readonly hook: MatchingSubscription | null
}

export type UnwrittenCalls = {
  /** Until `settled`. */
  add(call: Unwritten, settled: Promise<void>): void
  find(callId: CallId): Unwritten | null
  /** Undefined: no such call asks for it. */
  script(question: ScriptQuestion): string | null | undefined
  stepped(step: CallStep): void
}

export function createUnwrittenCalls(): UnwrittenCalls {
  const calls = new Map<CallId, Unwritten>()
  const scripts = new Map<string, string | null>()
  const keyOf = ({ accountId, workerId, direction }: CallFactsRow): string =>
    keyOfScriptQuestion({ accountId, workerId, direction })

  const forget = (callId: CallId): void => {
    calls.delete(callId)
    const asked = new Set([...calls.values()].map(({ facts }) => keyOf(facts)))
    for (const key of scripts.keys()) if (!asked.has(key)) scripts.delete(key)
  }
  return {
    add(call, settled) {
      const callId = call.facts.id
      calls.set(callId, call)
      scripts.set(keyOf(call.facts), call.script)
      const gone = (): void => forget(callId)
      settled.then(gone, gone)
    },
    find: (callId) => calls.get(callId) ?? null,
    script: (question) => scripts.get(keyOfScriptQuestion(question)),
    stepped(step) {
      const call = calls.get(step.tenure.callId)
      if (!call) return
      const { facts } = call
      const { externalTools: _, ...change } = step.rowsOf({ call: facts, turns: [], config: facts }).change
      calls.set(facts.id, { ...call, facts: { ...facts, ...change } })
    },
  }
}
