/** Owns how a leg is started for a talk, or for what is said before one. */
import type { Bus } from '../../model/bus.ts'
import { pause, type Clock } from '../../model/clock.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import type { LegCommand, LegReply, StartedRecording } from '../../model/leg.ts'
import { reachLeg } from '../node/leg-link.ts'
import type { CallFact } from '../call/call-event.ts'
import type { UnbrokenLineDeps } from './unbroken-line.ts'

type Deps = {
  readonly callId: CallId
  readonly epoch: number
  readonly bus: Bus
  readonly clock: Pick<Clock, 'after' | 'now'>
  readonly nodeId?: NodeId
  post(fact: CallFact): void
}

/** A leg that is there and does not answer may be on the other side of a bus that is just coming back; asked again, it does nothing twice. */
const startAttempts = 3

export async function startLeg({ bus, callId }: Deps, command: LegCommand, isStopped: () => boolean) {
  let reply = await reachLeg(bus, callId, command)
  const isUnknown = (): boolean => reply.type === 'silent' || reply.type === 'away'
  for (let again = 1; isUnknown() && again < startAttempts && !isStopped(); again++)
    reply = await reachLeg(bus, callId, command)
  return reply
}

/** Of the command that starts a leg: who listens, and how. */
export const listenerOf = ({ nodeId }: Pick<Deps, 'nodeId'>) => ({
  numbersKeys: true as const,
  ...(nodeId && { node: nodeId }),
})

/** Where it begins on the call's line of time, if it is one of a further leg. */
export const recordingFrom = (
  { clock }: Pick<Deps, 'clock'>,
  { recording, answeredAt }: { readonly recording: StartedRecording | null; readonly answeredAt: number },
): StartedRecording | null => recording && { ...recording, from: Math.max(0, Math.round(clock.now() - answeredAt)) }

export type Kept = Pick<UnbrokenLineDeps, 'isKept' | 'firstHeard'>

/** Of the line to a leg that has started. Who asked before is heard from where it is. */
export const lineOf = ({ waits, keeps }: Pick<Started, 'waits' | 'keeps'>): Kept => ({
  isKept: waits !== undefined || keeps === true,
  firstHeard: waits ? 0 : null,
})

export type Started = Extract<LegReply, { readonly type: 'started' }>

const listensEvery = 1_000

/** What waits for it is not heard before: it is said until the leg has heard it, or whoever watches it has found it gone. */
export async function listens(deps: Deps, isStopped: () => boolean): Promise<void> {
  while (!isStopped()) {
    const { type } = await startLeg(deps, { type: 'listens', epoch: deps.epoch }, isStopped)
    if (type !== 'silent' && type !== 'away') return
    await pause(deps.clock, listensEvery)
  }
}

/** `isStarted`: the leg of now has been started by this actor: nothing is to be begun anew. `records`: what it records is a part of its own. */
export async function lookAtLeg({ bus, callId, epoch }: Deps) {
  const reply = await reachLeg(bus, callId, { type: 'ping', epoch })
  const isHere = reply.type === 'here'
  return { isStarted: isHere && reply.startedBy === epoch, records: isHere && reply.isFurther === true }
}

export type StartWishes = Pick<
  Extract<LegCommand, { type: 'start' }>,
  'hears' | 'speaks' | 'recording' | 'goesOn' | 'settled'
>

/** Null: it does not start, and that was told; or nobody wants it any more. */
export async function startTalk(deps: Deps, wishes: StartWishes, isStopped: () => boolean) {
  const command = { type: 'start', epoch: deps.epoch, ...wishes, ...listenerOf(deps) } as const
  const reply = await startLeg(deps, command, isStopped)
  if (isStopped()) return null
  if (reply.type === 'started') return reply
  const details = `the leg did not start: ${JSON.stringify(reply)}`
  deps.post({
    type: 'leg_disconnected',
    cause: 'failed',
    details,
    ...(reply.type === 'gone' && { gone: true, awaited: true }),
  })
  return null
}
