/**
 * Owns one step of a call: `(snapshot, fact, now) → (snapshot, effects)`. Pure, so that the event log can be run again (`replay`) and must
 * give the same effects.
 */
import { createActor, type AnyActorScope, type ExecutableActionObject, type SnapshotFrom } from 'xstate'
import type { ProgressStatus } from '../../../model/call.ts'
import type { Json, JsonObject } from '../../../model/json.ts'
import type { CallBirth, CallFact, Deadline, Effect } from '../call-event.ts'
import { callMachine } from './machine.ts'
import type { CallContext } from './machine-actions.ts'

type LiveSnapshot = SnapshotFrom<typeof callMachine>
type OutermostOf<Value> = Value extends string ? Value : keyof Value
/** An outermost state. */
type Place = OutermostOf<LiveSnapshot['value']>

/** A call between two facts. `persisted` is plain JSON, and all that is needed to go on. */
export type CallState = {
  readonly persisted: Json
  readonly progress: ProgressStatus
  readonly context: CallContext
  /** The durable wait that is all that is under way: no actor needs to be in memory. Null: something is. */
  readonly waitsIn: (typeof durableWaits)[number] | null
  readonly finished: boolean
  /** What is there of a leg: `held`, it must be there; `made`, it is on its way; null, nobody asks. */
  readonly leg: 'held' | 'made' | null
}

export type Step = {
  readonly state: CallState
  readonly effects: readonly Effect[]
  /** The call had no use for the fact in its state: illegal or late. */
  readonly ignored: boolean
}

const durableWaits = ['waitingForClient', 'scheduled', 'queued', 'processing'] as const

export function beginCall(birth: CallBirth, now: number): Step {
  const unborn = callMachine.getInitialSnapshot(scopeOf([]), { ...birth, now })
  return advance(unborn, { type: 'created', ...birth })
}

export function step(persisted: Json, fact: CallFact, now: number): Step {
  return advance(restore(persisted, now), fact)
}

export const stateOf = (persisted: Json): CallState => toState(restore(persisted))

/** The earliest deadline of the state, if it waits for one. */
export function nextDeadlineOf(state: CallState): { readonly deadline: Deadline; readonly at: number } | null {
  const waits = Object.entries(state.context.deadlines).map(([deadline, at]) => ({
    deadline: deadline as Deadline,
    at,
  }))
  return waits.sort((a, b) => a.at - b.at)[0] ?? null
}

function advance(before: LiveSnapshot, fact: CallFact): Step {
  const actions: ExecutableActionObject[] = []
  const after = callMachine.transition(before, fact, scopeOf(actions))
  const ignored = after === before && actions.length === 0
  const state = toState(after)
  const effects = actions.map((action) => ({ type: action.type, ...(action.params as object) }) as Effect)
  return { state, effects: [...statusChange(before, state), ...effects], ignored }
}

/**
 * Where the machine is asked, as `transition` of the library makes it, which makes an actor, its system and a first snapshot anew each time: nobody
 * lives in this one, because the call machine invokes and spawns nobody, so that one does for all.
 */
const self = createActor(callMachine, { input: {} as CallBirth & { readonly now: number } })
const nothing = (): void => undefined

/** Tells `actions` what the machine asks for. */
const scopeOf = (actions: ExecutableActionObject[]): AnyActorScope => ({
  self,
  system: self.system,
  id: '',
  sessionId: '',
  logger: nothing,
  defer: nothing,
  stopChild: nothing,
  emit: nothing,
  actionExecutor: (action) => void actions.push(action),
})

/** Comparing a name is a small part of what `matches` does. */
const placeOf = ({ value }: LiveSnapshot): Place =>
  typeof value === 'string' ? value : (Object.keys(value)[0] as Exclude<Place, typeof value>)

/** A change of status is derived, never announced by hand: before the other effects of the step. */
function statusChange(before: LiveSnapshot, after: CallState): Effect[] {
  if (placeOf(before) !== 'unborn' && progressOf(before) === after.progress) return []
  return [{ type: 'announce_status', status: after.progress, providerStatus: after.context.providerStatus }]
}

function progressOf(snapshot: LiveSnapshot): ProgressStatus {
  const { context } = snapshot
  const place = placeOf(snapshot)
  const decided = place === 'windingUp' && context.answeredAt === null
  if (decided || place === 'over' || place === 'processing' || snapshot.status === 'done')
    return context.outcome?.status ?? 'completed'
  if (place === 'queued' || place === 'resolving') return context.direction === 'inbound' ? 'ringing' : 'queued'
  if (place === 'dialing') return snapshot.matches({ dialing: 'ringing' }) ? 'ringing' : 'queued'
  if (context.answeredAt !== null) return 'in_progress'
  return context.transport === 'webrtc' || place === 'scheduled' ? 'scheduled' : 'ringing'
}

function toState(snapshot: LiveSnapshot): CallState {
  const place = placeOf(snapshot)
  return {
    persisted: persistedOf(snapshot),
    progress: progressOf(snapshot),
    context: snapshot.context,
    waitsIn: durableWaits.find((state) => place === state) ?? null,
    finished: snapshot.status === 'done',
    leg: legOf(place),
  }
}

/** Only what XState restores from; plain JSON by construction. The engine's memory is that already, and may be large. */
function persistedOf(snapshot: LiveSnapshot): Json {
  const { context, ...machine } = callMachine.getPersistedSnapshot(snapshot) as unknown as { context: CallContext }
  const { memory, ...rest } = context
  const plain = JSON.parse(JSON.stringify({ ...machine, context: rest })) as { readonly context: JsonObject }
  return { ...plain, context: { ...plain.context, memory } }
}

const heldIn: ReadonlySet<Place> = new Set(['answering', 'redirecting', 'talking', 'leavingMessage'])

function legOf(place: Place): CallState['leg'] {
  if (place === 'dialing' || place === 'preparing') return 'made'
  return heldIn.has(place) ? 'held' : null
}

function restore(persisted: Json, now?: number): LiveSnapshot {
  const snapshot = persisted as unknown as Parameters<typeof callMachine.resolveState>[0]
  if (now === undefined) return callMachine.resolveState(snapshot)
  return callMachine.resolveState({ ...snapshot, context: { ...(snapshot.context as CallContext), now } })
}
