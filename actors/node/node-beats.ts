/**
 * Owns the beats of this process and what it hears of the others: it tells ten times a second that it lives, and who falls silent while its own
 * bus answers is told to those who take over. The bus is asked with each look, so that a bus that is gone, or frozen, makes nobody silent; who is not
 * heard is asked before anybody takes it for dead.
 */
import { BusNoResponders, type Bus } from '../../model/bus.ts'
import { fromBytes, toBytes } from '../../model/bus-json.ts'
import type { Cancel, Clock } from '../../model/clock.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import { everyBeat, NodeBeat, nodeOf, nodeSubjectsOf } from '../../model/node-beat.ts'
import { nothingSeen, type NodeSightings } from '../../store/nodes.ts'
import { createNodeSilence, othersAfter, type Heard } from './node-silence.ts'

/** What a node knows of the others by their beats. */
export type NodePeers = {
  sightings(): NodeSightings
  /** Those that are heard, without this one. */
  heard(): Heard[]
  /** Of a call whose owner is silent: this node should take it now. `near`: the process of its leg, which comes first where it runs calls; null: unknown. */
  takes(callId: CallId, owner: NodeId, near?: NodeId | null): boolean
  /** Others would take calls too. */
  hasRivals(): boolean
  /** This node's own bus is away: nobody can hear it, and it lives. */
  isOffBus(): boolean
  watch(watcher: PeerWatcher): { close(): void }
}

export type PeerWatcher = {
  /** A node is silent, or has been for long enough that whoever can takes what is left of it. */
  silence(): void
  /** What `isOffBus` answers has changed. */
  link(): void
}

/** A node that knows of no others: leases alone decide. */
export const noPeers: NodePeers = {
  sightings: () => nothingSeen,
  heard: () => [],
  takes: () => true,
  hasRivals: () => false,
  isOffBus: () => false,
  watch: () => ({ close: () => undefined }),
}

export type NodeBeats = NodePeers & {
  /** What is told from here on. */
  tell(state: () => Omit<NodeBeat, 'leaves'>): void
  /** Tells that this node leaves. Idempotent. */
  close(): Promise<void>
}

type Deps = {
  readonly bus: Bus
  readonly clock: Pick<Clock, 'after'>
  /** Ms that never jump. */
  readonly now: () => number
  readonly nodeId: NodeId
  readonly log: Log
  /** Ms since the way to other processes last carried something, where the bus knows. A flush alone may be content with this process. */
  readonly quietFor?: () => number
}

const nothing = new Uint8Array(0)
const lookEvery = 50
const beatEvery = 100
/** Ms that an answer of the bus, or of this process's own standing still, may take: after more nothing is known of anybody. */
const awayAfter = 250
/** Ms. Then it is asked again: the bus may not have noticed yet that it has ended. */
const answerWithin = 150
/** Looks without an answer, after which the bus is away. A process that stood still has not looked meanwhile, and blames no bus for it. */
const mostInVain = 3

export function createNodeBeats(deps: Deps): NodeBeats {
  const { bus, clock, now, nodeId, log, quietFor = () => 0 } = deps
  const { beat: subject, alive } = nodeSubjectsOf(nodeId)
  const silence = createNodeSilence()
  const watchers = new Set<PeerWatcher>()
  let state = (): Omit<NodeBeat, 'leaves'> => unsaid
  let closing: Promise<void> | null = null
  let toldAt = -Infinity
  let lookedAt = now()
  /** The bus owes an answer, and these looks have found none. */
  let isAsked = false
  let inVain = 0
  let isOff = false
  let cancel: Cancel = () => undefined
  const cancels = new Set<Cancel>()

  const hearing = bus.subscribe(everyBeat, (message) => {
    const from = nodeOf(message.subject)
    const beat = from === nodeId ? undefined : NodeBeat.safeParse(fromBytes(message.payload)).data
    if (beat) silence.beat(from, beat, now())
  })
  const answering = bus.subscribe(alive, (message) => message.respond(nothing))
  /** Asked, and not answered yet. */
  const doubted = new Set<NodeId>()
  const askWhetherAlive = async (suspect: NodeId): Promise<void> => {
    const asked = now()
    doubted.add(suspect)
    try {
      await bus.request(nodeSubjectsOf(suspect).alive, nothing, { timeout: answerWithin })
      silence.answered(suspect, now())
    } catch (error) {
      // No answer says nothing: it may be busy, or the bus away.
      if (error instanceof BusNoResponders) silence.left(suspect, asked)
    } finally {
      doubted.delete(suspect)
    }
  }
  const notify = (): void => watchers.forEach((watcher) => watcher.silence())
  const linkIs = (off: boolean): void => {
    if (isOff === off) return
    isOff = off
    watchers.forEach((watcher) => watcher.link())
  }
  const notifyLater = (): void => {
    const wait = clock.after(othersAfter, () => {
      cancels.delete(wait)
      notify()
    })
    cancels.add(wait)
  }
  const away = (): void => {
    silence.wasAway(now())
    if (!closing) linkIs(true)
  }
  const answered = (asked: number): void => {
    if (closing) return
    isAsked = false
    if (now() - asked > awayAfter || quietFor() > awayAfter) return away()
    const silent = silence.reached(asked)
    linkIs(false)
    for (const suspect of silence.suspects()) if (!doubted.has(suspect)) void askWhetherAlive(suspect)
    if (silent.length === 0) return
    log.warn('nodes are silent', { nodes: silent })
    notify()
    notifyLater()
  }
  const ask = (): void => {
    const asked = now()
    isAsked = true
    inVain = 0
    // A bus that is closed answers nobody any more.
    void bus.flush().then(
      () => answered(asked),
      () => void (isAsked = false),
    )
  }
  const look = (): void => {
    cancel = clock.after(lookEvery, look)
    const at = now()
    if (isAsked) inVain++
    if (at - lookedAt > awayAfter || (isAsked && inVain >= mostInVain)) away()
    silence.stood(Math.max(0, at - lookedAt - lookEvery))
    lookedAt = at
    // Half a look: timers are a little early or late.
    if (at - toldAt >= beatEvery - lookEvery / 2) {
      toldAt = at
      bus.publish(subject, toBytes(state()))
    }
    if (!isAsked) ask()
  }
  const leave = async (): Promise<void> => {
    cancel()
    for (const wait of cancels) wait()
    hearing.close()
    answering.close()
    bus.publish(subject, toBytes({ ...state(), leaves: true } satisfies NodeBeat))
    await bus.flush()
  }
  look()
  return {
    sightings: silence.sightings,
    heard: silence.heard,
    takes(callId, owner, near = null) {
      const { room, draining } = state()
      const candidates = silence.heard().filter((peer) => takesOver(peer))
      if (!draining && room > 0) candidates.push({ ...state(), nodeId })
      return silence.isFirstFor(callId, owner, favored(candidates, near), nodeId, now())
    },
    hasRivals: () => silence.heard().some((peer) => takesOver(peer)),
    isOffBus: () => isOff,
    watch(watcher) {
      watchers.add(watcher)
      return { close: () => void watchers.delete(watcher) }
    },
    tell: (next) => void (state = next),
    close: () => (closing ??= leave()),
  }
}

export const takesOver = ({ roles, room, draining }: Heard): boolean =>
  roles.includes('actors') && room > 0 && !draining

/** The process of the leg, where it is one of them; else those with at least half of the room that the emptiest has, all of which tell a little ago. */
function favored(candidates: readonly Heard[], near: NodeId | null): NodeId[] {
  if (near !== null && candidates.some(({ nodeId }) => nodeId === near)) return [near]
  const most = Math.max(...candidates.map(({ room }) => room))
  return candidates.filter(({ room }) => room * 2 >= most).map(({ nodeId }) => nodeId)
}

/** Until the parts of a process are there. */
const unsaid: Omit<NodeBeat, 'leaves'> = { roles: [], running: 0, room: 0, draining: false, holds: false }
