/**
 * Owns the in-process `Bus`. A message is copied when it is published, unless its sender gave it away, and delivered in the next turn of the event loop, in order; at most
 * `maxPending` messages and `maxPendingBytes` bytes wait for that turn, and what is published past it is dropped and logged (at most once).
 */
import { BusNoResponders } from '../../model/bus.ts'
import type { BusMessage, NodeBus, Subscription } from '../../model/bus.ts'
import type { Clock } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import { pooledCopyOf } from '../../model/pooled-bytes.ts'
import { noTelemetry, type Telemetry } from '../../model/telemetry.ts'
import { assertPayload, assertSubject } from './bus-rules.ts'
import { createPendingRequests } from './pending-requests.ts'
import type { PendingRequest } from './pending-requests.ts'
import { createSubscribers, isEmpty, onlyReceiverOf, receiversOf } from './subscribers.ts'
import type { Route, Subscriber } from './subscribers.ts'

const maxPending = 65_536
const maxPendingBytes = 64 * 1024 * 1024

type Deps = { readonly log: Log; readonly clock: Clock; readonly telemetry?: Telemetry }

export type LocalBus = NodeBus & {
  /** Who of this process would hear of the subject: nobody, somebody, or somebody for a queue. Throws TypeError for what is no subject. */
  heardBy(subject: string): 'nobody' | 'somebody' | 'queue'
}

export function createLocalBus({ log, clock, telemetry = noTelemetry }: Deps): LocalBus {
  const subscribers = createSubscribers()
  const requests = createPendingRequests(clock)
  const turns = createTurns(log, telemetry)
  let closing: Promise<void> | null = null

  function routeOf(subject: string): Route {
    if (!subscribers.isRouted(subject)) assertSubject(subject)
    return subscribers.routeOf(subject)
  }

  function send(subject: string, payload: Uint8Array, respond: BusMessage['respond'] | null, isGiven = false): void {
    assertPayload(payload)
    const route = routeOf(subject)
    if (isEmpty(route)) return
    const isRequest = respond !== null
    const own = isGiven ? payload : pooledCopyOf(payload)
    const message = { subject, payload: own, isRequest, respond: respond ?? ignoreAnswer }
    turns.add(payload.length, () => deliver(route, message, log))
  }

  async function request(subject: string, payload: Uint8Array, timeout: number): Promise<Uint8Array> {
    assertPayload(payload)
    if (isEmpty(routeOf(subject))) throw new BusNoResponders(`nobody listens on ${subject}`)
    if (closing) throw new BusNoResponders('the bus is closed')
    const pending = requests.open(subject, timeout)
    send(subject, payload, responderOf(pending))
    return pending.answer
  }

  /** An answer travels in order with what its sender published before it; only the first one counts. */
  const responderOf = (pending: PendingRequest) => (payload: Uint8Array) => {
    assertPayload(payload)
    if (!pending.isOpen()) return
    const answer = pooledCopyOf(payload)
    turns.add(answer.length, () => pending.settle(answer))
  }

  function subscribe(pattern: string, handler: Subscriber['handler'], queue: string | null): Subscription {
    const subscriber: Subscriber = { pattern, handler, queue, closed: closing !== null }
    if (!closing) subscribers.add(subscriber)
    return { close: () => subscribers.remove(subscriber) }
  }

  async function drain(): Promise<void> {
    await turns.empty()
    requests.close()
    for (const subscriber of subscribers.all()) subscribers.remove(subscriber)
  }

  return {
    publish(subject, payload, isGiven) {
      if (!closing) send(subject, payload, null, isGiven)
    },
    subscribe: (pattern, handler, options) => subscribe(pattern, handler, options?.queue ?? null),
    request: (subject, payload, { timeout }) => request(subject, payload, timeout),
    flush: nextTurn,
    close: () => (closing ??= drain()),
    quietFor: () => 0,
    heardBy(subject) {
      const route = routeOf(subject)
      if (isEmpty(route)) return 'nobody'
      return route.groups.length > 0 ? 'queue' : 'somebody'
    },
  }
}

/** Each receiver gets bytes of its own; the last one takes those of the message. */
function deliver(route: Route, message: BusMessage, log: Log): void {
  const only = onlyReceiverOf(route)
  if (only) return hand(only, message, log)
  const receivers = receiversOf(route)
  const last = receivers.at(-1)
  for (const subscriber of receivers)
    hand(subscriber, subscriber === last ? message : { ...message, payload: pooledCopyOf(message.payload) }, log)
}

function hand(subscriber: Subscriber, message: BusMessage, log: Log): void {
  if (subscriber.closed) return
  try {
    subscriber.handler(message)
  } catch (error) {
    log.error('bus handler threw', { subject: message.subject, error })
  }
}

/** Everything waiting runs in one later turn; what that turn adds runs in the one after. */
function createTurns(log: Log, telemetry: Telemetry) {
  let waiting: (() => void)[] = []
  let bytes = 0
  let dropped = 0

  function run(): void {
    const turn = waiting
    if (dropped > 0) {
      log.error('bus is full, messages were dropped', { dropped, waiting: turn.length })
      telemetry.count('bus.dropped', {}, dropped)
    }
    waiting = []
    bytes = 0
    dropped = 0
    for (const action of turn) action()
  }

  function add(size: number, action: () => void): void {
    if (waiting.length >= maxPending || bytes + size > maxPendingBytes) return void dropped++
    bytes += size
    if (waiting.push(action) === 1) setImmediate(run)
  }

  /** Also waits for what the turns add themselves, such as answers. */
  async function empty(): Promise<void> {
    while (waiting.length > 0) await nextTurn()
  }

  return { add, empty }
}

/** Immediates run in the order they were asked for, so what waits now has been delivered by then. */
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function ignoreAnswer(): void {
  // Only requests have an answer.
}
