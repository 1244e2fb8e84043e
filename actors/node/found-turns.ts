/**
 * Owns what becomes of turns that were kept here and can be written no more, because another actor has the call: that one is told of each, in their order, and
 * writes it behind its own, unless it has heard the same again. Of a call that nobody runs any more they are written from here. Told twice it is written once.
 */
import { pause, type Clock } from '../../model/clock.ts'
import type { Turn } from '../../model/call.ts'
import type { CallId, NewId, NodeId } from '../../model/ids.ts'
import type { Bus } from '../../model/bus.ts'
import { keysOf } from '../../model/transcript-marks.ts'
import { findOwners, takenAfter } from '../../store/call-steps.ts'
import { renewCallWords } from '../../store/call-words.ts'
import type { Sql } from '../../store/sql.ts'
import { listTurns } from '../../store/transcripts.ts'
import { writeUnowned } from '../../store/write-steps.ts'
import type { CallFact } from '../call/call-event.ts'
import { storedStep, type KeptStep } from '../call/call-step.ts'
import { step } from '../call/machine/step.ts'
import type { NodePeers } from './node-beats.ts'
import { sendFact } from './remote-facts.ts'

/** Of one call and one tenure, in their order. Resolves with those whose turns are in the transcript then. */
export type BringFound = (
  callId: CallId,
  steps: readonly KeptStep[],
  signal: AbortSignal,
) => Promise<ReadonlySet<KeptStep>>

type Deps = {
  readonly sql: Sql
  readonly newId: NewId
  readonly bus: Bus
  readonly clock: Clock
  readonly nodeId: NodeId
  readonly peers: Pick<NodePeers, 'sightings'>
  /** So many deliveries have been committed. */
  readonly wakeDeliveries: (written: number) => void
  /** An actor of this node. */
  find(callId: CallId): Promise<Actor | null> | null
}

type Actor = { readonly epoch: number; deliver(fact: CallFact): Promise<boolean> }

type Found = Extract<CallFact, { type: 'turn_found' }>

/** Whoever has the call may have died, and another one be about to take it. */
const attempts = 4
const pauseBetween = 500
/** Ms in which an actor that has taken a call listens to what the leg had kept. */
const listensWithin = 2_000
const nothing: ReadonlySet<KeptStep> = new Set()

export function createFoundTurns(deps: Deps): BringFound {
  const { sql } = deps
  /** Of a call that nobody runs. */
  const write = async (callId: CallId, fact: Found): Promise<'there' | 'left'> => {
    const { written, announced } = await writeUnowned(sql, deps.newId, { callId, nodeId: deps.nodeId }, (claim) => {
      const now = deps.clock.now()
      const next = step(claim.snapshot, fact, now)
      const tenure = { ...claim, callId, nodeId: deps.nodeId }
      return next.ignored ? null : storedStep(tenure, { fact, next, now, snapshot: next.state.persisted })
    })
    if (announced > 0) deps.wakeDeliveries(announced)
    return written.size > 0 ? 'there' : 'left'
  }
  /** `left`: nobody has the call and it has no use for the fact, or nobody answers for it. */
  const tell = async (callId: CallId, fact: Found): Promise<'here' | 'there' | 'left'> => {
    const found = (await findOwners(sql, [callId], deps.peers.sightings())).get(callId)
    if (!found?.owner) return write(callId, fact)
    if (found.owner !== deps.nodeId) return (await sendFact(deps.bus, callId, fact)) === 'taken' ? 'there' : 'left'
    const actor = await deps.find(callId)
    return actor && actor.epoch > fact.epoch && (await actor.deliver(fact)) ? 'here' : 'left'
  }
  const bring = async (callId: CallId, fact: Found, signal: AbortSignal): Promise<'here' | 'there' | 'left'> => {
    for (let attempt = 1; ; attempt++) {
      const told = await tell(callId, fact)
      if (told !== 'left' || attempt === attempts || !(await pause(deps.clock, pauseBetween, signal))) return told
    }
  }
  return async (callId, steps, signal) => {
    const found = steps.flatMap((step) => {
      const fact = foundIn(step)
      return fact ? [{ step, fact }] : []
    })
    const tenure = steps[0]?.tenure
    if (tenure === undefined || found.length === 0) return nothing
    const { accountId, epoch } = tenure
    const written = await listTurns(sql, accountId, callId)
    const taken = await takenAfter(sql, callId, epoch)
    const heardAgainUntil = (taken ?? Number.NEGATIVE_INFINITY) + listensWithin
    // What this node's own actor writes waits behind these steps.
    const here = new Set<Found>()
    for (const { fact } of found) {
      if (isAmong(written, fact.turn, heardAgainUntil)) continue
      const told = await bring(callId, fact, signal)
      if (told === 'left') break
      if (told === 'here') here.add(fact)
    }
    // Where it has been processed already.
    await renewCallWords(sql, [callId])
    // A version of before this was told takes no notice of it.
    const there = await listTurns(sql, accountId, callId)
    return new Set(
      found.flatMap(({ step, fact }) => (here.has(fact) || isAmong(there, fact.turn, heardAgainUntil) ? [step] : [])),
    )
  }
}

function foundIn({ tenure: { epoch, version }, logged }: KeptStep): Found | null {
  const told = logged.event as unknown as CallFact
  if (told.type !== 'turn_committed' || logged.ignored) return null
  const { turn, usage } = told
  return { type: 'turn_found', epoch, version, turn, ...(usage && { usage }) }
}

/**
 * What the leg had kept of the caller was heard again until then, ms since the answer, and what it had of the agent became the other actor's: nobody speaks
 * twice at a time.
 */
const isAmong = (turns: readonly Turn[], turn: Turn, heardAgainUntil: number): boolean =>
  turns.some(
    (one) =>
      one.role === turn.role && (isSame(one, turn, heardAgainUntil) || overlap(one, turn) * 2 > shorterOf(one, turn)),
  )

/**
 * Two engines need not agree on the time at which words were said that both have heard. Keys take no time: those that the leg had kept are told as of the
 * moment in which the other actor heard them.
 */
const isSame = (one: Turn, other: Turn, heardAgainUntil: number): boolean =>
  one.text === other.text && (one.from === other.from || (one.from > other.from && isHeardAgain(one, heardAgainUntil)))
const isHeardAgain = ({ role, text, from }: Turn, heardAgainUntil: number): boolean =>
  role === 'user' && (from < heardAgainUntil || keysOf(text) !== null)
const overlap = (one: Turn, other: Turn): number => Math.min(one.to, other.to) - Math.max(one.from, other.from)
const shorterOf = (one: Turn, other: Turn): number => Math.max(1, Math.min(one.to - one.from, other.to - other.from))
