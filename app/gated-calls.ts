/**
 * Owns where the gate stands before what begins a call: before the database is asked, before a browser's socket is upgraded, before an INVITE
 * is looked at. docs/design/load.md "The gate before new calls"
 */
import type { Work } from '../actors/rounds/scheduler.ts'
import { loadProblemOf, unavailableOf, type LoadGate, type LoadRefusal, type SetUps } from '../model/load-gate.ts'
import type { OutboundCalls } from '../model/outbound-calls.ts'
import type { CreatePhoneCall } from '../model/phone-call.ts'
import { Problem } from '../model/problem.ts'
import type { RefusedArrival, Telephony, TrunkAccess } from '../model/telephony.ts'
import type { Admission, CreateWebCall } from '../model/web-call.ts'
import { createRecent } from '../net/recent.ts'

type WebCalls = { readonly createWebCall: CreateWebCall; readonly admission: Admission }

/** Sessions of this process that nobody has joined yet. */
const maxPromised = 20_000

/**
 * Who got a session here may join while others are refused for their number: a page has no other node to go to. Elsewhere the session was
 * promised by another process, and its browser is one more for this one.
 */
export function gatedWebCalls(gate: LoadGate, { createWebCall, admission }: WebCalls): WebCalls {
  const promised = createRecent<true>(maxPromised)

  return {
    async createWebCall(...given) {
      const refusal = gate.admit('web_session')
      if (refusal) throw loadProblemOf(refusal)
      try {
        const created = await createWebCall(...given)
        promised.set(created.token, true)
        return created
      } catch (error) {
        gate.giveBack('web_session')
        throw error
      }
    },
    admission: {
      ...admission,
      async admit(token, origin) {
        const isOwn = promised.get(token) !== undefined
        // Nothing is taken for a token that may be made up.
        const refusal = isOwn ? gate.admitPromised('web_call') : gate.refusal('web_call')
        if (refusal) return loadProblemOf(refusal)
        promised.delete(token)
        const admitted = await admission.admit(token, origin)
        const isRefused = admitted instanceof Problem
        if (isOwn && isRefused) gate.giveBack('web_call')
        if (!isOwn && !isRefused) gate.began('web_call', 1)
        return admitted
      },
      // It was let in once, as one that was promised, and its sound is made anew here.
      async arrive() {
        const refusal = gate.admitPromised('web_call')
        return refusal ? loadProblemOf(refusal) : admission.arrive()
      },
    },
  }
}

/** Of a process that stops: who is here already may come back, and nobody else comes. */
export function openUntil(isEnding: () => boolean, stopping: () => Problem, admission: Admission): Admission {
  return {
    ...admission,
    admit: async (...given) => (isEnding() ? stopping() : admission.admit(...given)),
    arrive: async () => (isEnding() ? stopping() : admission.arrive()),
  }
}

/** A telephone call that is placed waits for its turn, so only what cannot be written is refused. */
export function gatedPhoneCalls(gate: LoadGate, createPhoneCall: CreatePhoneCall): CreatePhoneCall {
  return async (...given) => {
    const refusal = gate.writing()
    if (refusal) throw unavailableOf(refusal)
    return createPhoneCall(...given)
  }
}

/** The same of calls that a client plans and a user confirms. */
export function gatedOutboundCalls(gate: LoadGate, calls: OutboundCalls): OutboundCalls {
  const requireWriting = (): void => {
    const refusal = gate.writing()
    if (refusal) throw unavailableOf(refusal)
  }
  return {
    plan: calls.plan,
    async place(...given) {
      requireWriting()
      return calls.place(...given)
    },
    async confirm(...given) {
      requireWriting()
      return calls.confirm(...given)
    },
  }
}

/** Before anybody looks up whose key it is. */
export const noRoomForOf =
  (gate: LoadGate) =>
  (creates: 'web_call' | 'phone_call' | null): Problem | null => {
    if (creates === null) return null
    const refusal = creates === 'web_call' ? gate.refusal('web_session') : gate.writing()
    if (!refusal) return null
    return creates === 'web_call' ? loadProblemOf(refusal) : unavailableOf(refusal)
  }

export function countedDials(gate: LoadGate, dial: Work): Work {
  return (job) => {
    gate.began('phone_call', 1)
    return dial(job)
  }
}

/** `Telephony.overload`. */
export function overloadOf(gate: LoadGate): NonNullable<Telephony['overload']> {
  return (route): RefusedArrival | null => {
    const refusal = route ? gate.admit('phone_call') : gate.refusal('phone_call')
    return refusal && arrivalRefusedBy(refusal, route?.trunk)
  }
}

/** `Telephony.turn`. */
export const turnOf =
  (setUps: SetUps): NonNullable<Telephony['turn']> =>
  async () => {
    const turn = await setUps.turn()
    return 'done' in turn ? turn : arrivalRefusedBy(turn)
  }

/** A browser that joins, or comes from another process, has its place already, and waits for its turn. */
export const joinedInTurn = (setUps: SetUps, admission: Admission): Admission => ({
  ...admission,
  admit: (...given) => setUps.inTurn(() => admission.admit(...given)),
  arrive: () => setUps.inTurn(() => admission.arrive()),
})

function arrivalRefusedBy(
  { details, retryAfterSeconds }: LoadRefusal,
  trunk?: Pick<TrunkAccess, 'accountId' | 'id'>,
): RefusedArrival {
  const { accountId = null, id: trunkId = null } = trunk ?? {}
  return { reason: 'node_overloaded', details, sipStatus: 503, accountId, trunkId, retryAfterSeconds }
}
