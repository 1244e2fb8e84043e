/**
 * Owns how the memory of a call's engine is kept: the log tells with each turn what has changed of it, and all of it now and then; a snapshot, which is
 * written with every step, only names the step since which the log has it. An actor that takes the call over reads it there. docs/adr/0001
 */
import type { Clock } from '../../../model/clock.ts'
import { patchOf } from '../../../model/json-patch.ts'
import type { Json, JsonObject } from '../../../model/json.ts'
import type { CallId } from '../../../model/ids.ts'
import type { Log } from '../../../model/log.ts'
import { retry, waitsOf } from '../../../model/retry.ts'
import { listMemoryTurns } from '../../../store/call-memory.ts'
import { databaseUnreachable } from '../../../store/database-unreachable.ts'
import type { Sql } from '../../../store/sql.ts'
import type { CallFact } from '../call-event.ts'
import { memoryAfter } from '../machine/turn-memory.ts'

/** `since`: the step with which all of it was logged last, and so many changes came after it. Null: not by this actor, nor as it can be found again. */
export type MemoryPlace = { readonly since: number | null; readonly changes: number }

export const unlogged: MemoryPlace = { since: null, changes: 0 }

/** Then all of it is logged again: whoever takes the call over reads no more turns. */
const maxChanges = 100
/** Characters of JSON that a snapshot holds itself. */
const maxInSnapshot = 512
const readRetryDelays = [20, 100, 500, 2_000]

/** The fact as it is logged, and as the machine gets it: of a memory that is all there only what is new of it, if that is shorter. */
export function loggedFact({ since, changes }: MemoryPlace, known: Json, fact: CallFact): CallFact {
  if (fact.type !== 'turn_committed' || fact.memory === undefined) return fact
  if (since === null || changes >= maxChanges) return fact
  const { memory, ...turn } = fact
  const memoryChange = patchOf(known, memory)
  if (memoryChange.length === 0) return turn
  return lengthOf(memoryChange as Json) < lengthOf(memory) ? { ...turn, memoryChange } : fact
}

/** Once the fact has been committed as the step `seq`, and changed the call. */
export function placeAfter(place: MemoryPlace, fact: CallFact, seq: number): MemoryPlace {
  // Of the engine that takes the place of a lost one nothing is known yet.
  if (fact.type === 'engine_failed') return fact.fallsBackTo === undefined ? place : unlogged
  if (fact.type !== 'turn_committed') return place
  if (fact.memory !== undefined) return { since: seq, changes: 0 }
  return fact.memoryChange === undefined ? place : { ...place, changes: place.changes + 1 }
}

/** The snapshot as it is stored. */
export function withoutMemory({ since }: MemoryPlace, snapshot: Json): Json {
  const { context, ...machine } = snapshot as { readonly context: JsonObject }
  const { memory = null } = context
  if (since === null || memory === null || lengthOf(memory) <= maxInSnapshot) return snapshot
  return { ...machine, context: { ...context, memory: null }, memorySince: since }
}

type Deps = { readonly sql: Sql; readonly clock: Clock; readonly log: Log }
type Recalled = { readonly snapshot: Json; readonly memory: MemoryPlace }

/** The snapshot as it was before it was stored, of a call that nobody else writes any more. Snapshots of before have their memory in them. */
export async function withMemory({ sql, clock, log }: Deps, callId: CallId, stored: Json): Promise<Recalled> {
  const { memorySince, context, ...machine } = stored as { memorySince?: number; context: JsonObject }
  if (memorySince === undefined) return { snapshot: stored, memory: unlogged }
  const wait = waitsOf(readRetryDelays, databaseUnreachable)
  const [first, ...later] = await retry({ clock, wait }, () => listMemoryTurns(sql, callId, memorySince))
  if (first?.memory === undefined) {
    log.error('the log of a call does not tell what its engine remembers', { callId, memorySince })
    return { snapshot: { ...machine, context }, memory: unlogged }
  }
  const memory = later.reduce(memoryAfter, first.memory)
  return {
    snapshot: { ...machine, context: { ...context, memory } },
    memory: { since: memorySince, changes: later.length },
  }
}

const lengthOf = (json: Json): number => JSON.stringify(json).length
