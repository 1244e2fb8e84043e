/**
 * Owns sending a request to whoever answers for a URI: the targets of RFC 3263 one after the other, until one takes it. The user sees one
 * request with one end; when nobody takes it, the answer is made here.
 */
import { responseTo } from './message/response-to.ts'
import type { HeaderField, SipRequest, SipResponse } from './message/message.ts'
import type { SeenPeer } from './transport/seen-peer.ts'
import { TransportError, type Endpoint, type Flow, type Protocol, type Target } from './transport/transport.ts'
import type { ClientTransaction, Transactions } from './transaction/transaction.ts'
import { localized, publicNameIn, withContact, type Exit } from './dialog/draft-headers.ts'
import { nextHopOf } from './dialog/dialog-state.ts'

export type Order = {
  /** All but Via, and but Contact where that is ours to add. */
  readonly request: SipRequest
  /** In place of Route and Request-URI. */
  readonly nextHop?: string | null
  readonly wantsContact: boolean
  /** Within a dialog: by which name the peer knows us. Outside of one the request's own Contact tells. */
  readonly publicName?: string | null
  /** Within a dialog: which certificate of ours it began with. */
  readonly client?: string | null
  /** Of a request within a dialog. */
  readonly peer?: SeenPeer
  /** As of Target. */
  readonly via?: Target['via']
  /** Nothing is told before `send` has resolved. Final answers made here are told like any. */
  readonly response: (response: SipResponse, flow: Flow) => void
  /** The last word. */
  readonly terminated: () => void
}

export type Outgoing = {
  readonly flow: Flow
  /** As it was sent first, or would have been. */
  readonly sent: SipRequest
  /** Of an INVITE; null: it was never sent, or is over. */
  cancel(headers: readonly HeaderField[]): SipRequest | null
}

export type SendDeps = {
  readonly transactions: () => Transactions
  readonly externalOf: (protocol: Protocol, remote: Endpoint) => Endpoint
  /** RFC 3263; rejects or is empty where no target is found. `peer`: of a request within a dialog. */
  readonly resolve: (uri: string, peer: SeenPeer | null) => Promise<readonly Target[]>
  readonly newTag: () => string
}

/** Of answers that nobody gave: the app tells them by it. */
const nowhere: Flow = {
  protocol: 'udp',
  remote: { address: '0.0.0.0', port: 0 },
  local: { address: '0.0.0.0', port: 0 },
  connection: 0,
}

export function createSender(deps: SendDeps): (order: Order) => Promise<Outgoing> {
  return async (order) => {
    return createOutgoing(deps, order, await findTargets(deps, order)).begin()
  }
}

/** `fault`: why there are none, for people; null where that is not known. */
type Found = { readonly targets: readonly Target[]; readonly fault: string | null }

/** Never rejects: a name that cannot be resolved has no targets. */
async function findTargets({ resolve }: SendDeps, { request, nextHop, peer }: Order): Promise<Found> {
  try {
    return { targets: await resolve(nextHop ?? nextHopOf(request), peer ?? null), fault: null }
  } catch (error) {
    return { targets: [], fault: error instanceof TransportError ? error.message : null }
  }
}

type Gate = ReturnType<typeof createGate>

/** Calls wait until the gate is open; their order is kept. */
function createGate() {
  const waiting: (() => void)[] = []
  let isOpen = false
  return {
    pass: (action: () => void): void => void (isOpen ? action() : waiting.push(action)),
    open(): void {
      isOpen = true
      waiting.splice(0).forEach((action) => action())
    },
  }
}

/** How one request goes on: what is tried next, and whether somebody has spoken already. */
function createOutgoing(deps: SendDeps, order: Order, { targets, fault }: Found) {
  const gate = createGate()
  const publicName = order.publicName ?? publicNameIn(order.request)
  const rest = targets.map((target) => ({
    ...target,
    publicName,
    client: target.client ?? order.client ?? null,
    ...(order.via && { via: order.via }),
  }))
  let current: ClientTransaction | null = null
  let canceling: readonly HeaderField[] | null = null
  let answered = false
  const mayGoOn = (): boolean => rest.length > 0 && !canceling && !answered

  async function begin(): Promise<Outgoing> {
    const first = await tryNext('transport')
    // One turn of the event loop, so that whoever awaits is there first.
    setImmediate(gate.open)
    return { flow: first?.flow ?? nowhere, sent: first?.request ?? withoutTarget(order), cancel }
  }

  /** Null: no target is left, and that was told. */
  async function tryNext(failure: Failure): Promise<ClientTransaction | null> {
    for (let target = rest.shift(); target && !canceling; target = rest.shift()) {
      const begun = await attempt(deps, order, target, gate, { mayGoOn, goOn, tell, giveUp })
      if (!begun) continue
      current = begun
      if (canceling) current.cancel(canceling)
      return current
    }
    gate.pass(() => giveUp(failure))
    return null
  }

  /** Whatever is wrong with the next one, the app waits for an answer. */
  const goOn = (failure: Failure): void => void tryNext(failure).catch(() => giveUp(failure))

  function tell(response: SipResponse, flow: Flow): void {
    if (response.status >= 200) answered = true
    order.response(response, flow)
  }

  function giveUp(failure: Failure): void {
    const [status, usual] = canceling ? ([487, 'Request Terminated'] as const) : answerTo[failure]
    const reason = (status === 503 ? fault : null) ?? usual
    const request = current?.request ?? withoutTarget(order)
    if (!answered) tell(responseTo(request, { status, reason, toTag: deps.newTag() }), nowhere)
    order.terminated()
  }

  function cancel(headers: readonly HeaderField[]): SipRequest | null {
    if (answered || canceling) return null
    canceling = headers
    return current?.cancel(headers) ?? null
  }

  return { begin }
}

type Failure = 'timeout' | 'transport'

/** RFC 3261 §8.1.3.1. */
const answerTo = { timeout: [408, 'Request Timeout'], transport: [503, 'Service Unavailable'] } as const

type Course = {
  readonly mayGoOn: () => boolean
  readonly goOn: (failure: Failure) => void
  readonly tell: (response: SipResponse, flow: Flow) => void
  readonly giveUp: (failure: Failure) => void
}

/** Null: the target could not even be sent to. RFC 3263 §4.3 for when the next one is tried. */
async function attempt(
  deps: SendDeps,
  order: Order,
  target: Target,
  gate: Gate,
  course: Course,
): Promise<ClientTransaction | null> {
  let heard = false
  /** What this target says is of no interest any more. */
  let over = false
  const response = (received: SipResponse, flow: Flow): void => {
    heard = true
    if (over) return
    over = received.status === 503 && course.mayGoOn()
    if (over) course.goOn('transport')
    else course.tell(received, flow)
  }
  const failed = (failure: Failure): void => {
    over = true
    if (!heard && course.mayGoOn()) course.goOn(failure)
    else course.giveUp(failure)
  }
  try {
    return await deps.transactions().request(requestFor(deps, order, target), target, {
      response: (received, flow) => gate.pass(() => response(received, flow)),
      failed: (cause) => gate.pass(() => failed(cause)),
      terminated: () => gate.pass(() => over || order.terminated()),
    })
  } catch (error) {
    if (error instanceof TransportError) return null
    throw error
  }
}

function requestFor(deps: SendDeps, { request, wantsContact }: Order, target: Target): SipRequest {
  const place = deps.externalOf(target.protocol, target.remote)
  const exit: Exit = {
    protocol: target.protocol,
    external: { ...place, address: target.publicName ?? place.address },
    isSecure: /^sips:/i.test(request.uri),
  }
  const located = localized(request, exit)
  return wantsContact ? withContact(located, exit) : located
}

/** What would have been sent, had there been anybody. */
const withoutTarget = ({ request, wantsContact }: Order): SipRequest => {
  const exit: Exit = { protocol: 'udp', external: nowhere.local, isSecure: false }
  return wantsContact ? withContact(localized(request, exit), exit) : localized(request, exit)
}
