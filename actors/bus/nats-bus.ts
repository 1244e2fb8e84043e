/**
 * Owns the `Bus` between nodes: NATS core. A lost connection is made again for as long as the bus is open; what is published meanwhile is
 * dropped (at most once: sound would be stale, and truth is elsewhere), and so is what is published while the server does not answer (bus-pulse.ts).
 * At most `maxUnconfirmedBytes` are on the way to a slow server.
 */
import type { Msg, NatsConnection, Status } from 'nats'
import { BusAway, BusNoResponders, BusTimeout } from '../../model/bus.ts'
import type { BusMessage, NodeBus, Subscription } from '../../model/bus.ts'
import type { Clock } from '../../model/clock.ts'
import { deadline, goOn } from '../../model/deadline.ts'
import type { Log } from '../../model/log.ts'
import { noTelemetry, type Telemetry } from '../../model/telemetry.ts'
import { createBusPulse } from './bus-pulse.ts'
import { natsAddressOf } from './nats-address.ts'
import { assertPattern, assertPayload, assertSubject } from './bus-rules.ts'

const reconnectWait = 250
/** Ms for a connection to be made; a server that is stopped takes it and says nothing. */
const connectTimeout = 5_000
/** Two pings without an answer are a dead server. */
const pingInterval = 5_000
/** A drain waits for the server; past this the connection is cut. */
const drainTimeout = 2_000
/** The server is asked once per so many bytes whether it has them. */
const confirmEveryBytes = 256 * 1024
const maxUnconfirmedBytes = 16 * 1024 * 1024

type Deps = {
  /** One or more addresses, separated by commas. */
  readonly url: string
  readonly log: Log
  readonly clock: Clock
  /** Shows in the server's list of connections. */
  readonly name: string
  readonly telemetry?: Telemetry
  /** False: what is published here is heard by others only (joined-bus.ts). */
  readonly hearsItself?: boolean
}

export type Wire = NodeBus & {
  /** Like `flush`, but does not wait for a server that is away. */
  flushWhileUp(): Promise<void>
}

/** Throws when no server answers: a first connection that fails is a wrong setting, a later one is made again. */
export async function createNatsBus({
  url,
  log,
  clock,
  name,
  telemetry = noTelemetry,
  hearsItself = true,
}: Deps): Promise<Wire> {
  const connection = await connectTo(url, name, hearsItself)
  const gate = createGate(connection, { log, clock, telemetry })
  let closing: Promise<void> | null = null

  function publish(subject: string, payload: Uint8Array): void {
    assertSubject(subject)
    assertPayload(payload)
    if (!closing) gate.send(subject, payload)
  }

  function subscribe(pattern: string, handler: (message: BusMessage) => void, queue?: string): Subscription {
    assertPattern(pattern)
    if (closing || connection.isClosed()) return { close: () => undefined }
    const callback = (error: Error | null, message: Msg): void => {
      if (error) return log.error('bus subscription failed', { pattern, error })
      gate.heard()
      hand(handler, received(message, gate), log)
    }
    const subscription = connection.subscribe(pattern, queue === undefined ? { callback } : { callback, queue })
    return { close: () => subscription.unsubscribe() }
  }

  async function request(subject: string, payload: Uint8Array, timeout: number): Promise<Uint8Array> {
    assertSubject(subject)
    assertPayload(payload)
    if (closing) throw new BusNoResponders('the bus is closed')
    const copy = copyOf(payload)
    // The client would keep it and send it after its timeout: a call that is over would be dialed.
    if (!gate.isUp() && !(await isBack(clock, connection, gate, timeout)))
      throw new BusAway(`the bus was away for ${timeout} ms`, { wasSent: false })
    const before = gate.interruptions()
    try {
      return (await connection.request(subject, copy, { timeout })).data
    } catch (cause) {
      if (isNoResponders(cause)) throw new BusNoResponders(`nobody listens on ${subject}`, { cause })
      if (closing) throw new BusNoResponders('the bus was closed', { cause })
      if (before !== gate.interruptions() || gate.quietFor() > noGoodSign)
        throw new BusAway('the bus was interrupted meanwhile', { cause, wasSent: true })
      throw new BusTimeout(`no answer on ${subject} within ${timeout} ms`, { cause })
    }
  }

  return {
    publish,
    subscribe: (pattern, handler, options) => subscribe(pattern, handler, options?.queue),
    request: (subject, payload, { timeout }) => request(subject, payload, timeout),
    flush: () => confirmed(connection),
    flushWhileUp: async () => {
      if (gate.isUp()) await gate.whileUp(confirmed(connection))
    },
    close: () => (closing ??= drain(clock, connection, gate)),
    quietFor: gate.quietFor,
  }
}

async function connectTo(url: string, name: string, hearsItself: boolean): Promise<NatsConnection> {
  const { connect } = await import('nats')
  const { servers, ...how } = natsAddressOf(url)
  const connecting = connect({
    servers: [...servers],
    ...how,
    name,
    noEcho: !hearsItself,
    timeout: connectTimeout,
    maxReconnectAttempts: -1,
    reconnectTimeWait: reconnectWait,
    reconnectJitter: reconnectWait / 2,
    pingInterval,
    noAsyncTraces: true,
  })
  return connecting.catch((error: unknown) => {
    throw withCode(error)
  })
}

/** The client names what an operator can mend by the name of the error, and by words. */
function withCode(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  if (error.name === 'AuthorizationError') return Object.assign(error, { code: 'EBUSREFUSED' })
  return error.message.includes("does not support 'tls'") ? Object.assign(error, { code: 'ENOTLS' }) : error
}

/** The client wraps the reason in one error of its own or none, depending on the path. */
function isNoResponders(error: unknown): boolean {
  const reasons = error instanceof Error ? [error, error.cause] : []
  return reasons.some((reason) => reason instanceof Error && reason.name === 'NoResponders')
}

function received(message: Msg, gate: Gate): BusMessage {
  const replyTo = message.reply
  return {
    subject: message.subject,
    payload: message.data,
    isRequest: Boolean(replyTo),
    respond(payload) {
      assertPayload(payload)
      if (replyTo) gate.send(replyTo, payload)
    },
  }
}

/** An exception would end the client's reader, and with it every subscription. */
function hand(handler: (message: BusMessage) => void, message: BusMessage, log: Log): void {
  try {
    handler(message)
  } catch (error) {
    log.error('bus handler threw', { subject: message.subject, error })
  }
}

type Gate = ReturnType<typeof createGate>
type Told = { readonly telemetry: Telemetry }
/** Ms without an answer of the server; a request that ends in them says nothing of who was asked. */
const noGoodSign = 500

/** Knows whether the server can be reached and how much it has confirmed; past the bound, or without a connection, messages are dropped. */
function createGate(connection: NatsConnection, { log, clock, telemetry }: Pick<Deps, 'log' | 'clock'> & Told) {
  let connected = true
  let interruptions = 0
  let dropped = 0
  let unconfirmed = 0
  let unasked = 0
  /** Told when the connection is back, and when it is away. */
  const waiting = new Set<() => void>()
  const leaving = new Set<() => void>()
  const pulse = createBusPulse({
    clock,
    beat: () => connection.flush(),
    stopped: (isStopped) => (isStopped ? away('bus server does not answer') : back('bus server answers again')),
  })
  const isUp = (): boolean => connected && !pulse.isStopped()

  function away(message: string, fields = {}): void {
    interruptions++
    for (const resolve of leaving) resolve()
    leaving.clear()
    log.warn(message, fields)
  }

  function back(message: string, fields = {}): void {
    for (const resolve of waiting) resolve()
    log.info(message, { ...fields, dropped })
    tellDropped()
  }

  function note(status: Status): void {
    if (status.type === 'error') log.error('bus server refused', { error: status.error })
    if (status.type === 'disconnect') {
      connected = false
      pulse.rest()
      away('bus connection lost', { server: status.server })
    }
    if (status.type === 'reconnect') {
      connected = true
      pulse.begin()
      back('bus connection is back', { server: status.server })
    }
  }

  async function watch(): Promise<void> {
    for await (const status of connection.status()) note(status)
  }

  function send(subject: string, payload: Uint8Array): void {
    if (connection.isClosed()) return
    if (!isUp() || unconfirmed > maxUnconfirmedBytes) return drop()
    if (!sent(subject, payload)) return
    unconfirmed += payload.length
    unasked += payload.length
    if (unasked >= confirmEveryBytes) void ask()
  }

  function sent(subject: string, payload: Uint8Array): boolean {
    try {
      connection.publish(subject, copyOf(payload))
      return true
    } catch (error) {
      // The last moment of a drain takes nothing more.
      if (connection.isDraining()) return false
      throw error
    }
  }

  function drop(): void {
    if (dropped++ === 0) log.warn('bus drops messages', { isUp: isUp(), unconfirmed })
  }

  async function ask(): Promise<void> {
    const asked = unasked
    unasked = 0
    try {
      await connection.flush()
    } catch {
      // The connection broke: what was on the way is lost, not waiting.
    }
    unconfirmed -= asked
    tellDropped()
  }

  function tellDropped(): void {
    if (dropped > 0) telemetry.count('bus.dropped', {}, dropped)
    dropped = 0
  }

  watch().catch((error: unknown) => log.error('bus status unknown', { error }))
  pulse.begin()
  return {
    send,
    isUp,
    isConnected: () => connected,
    interruptions: () => interruptions,
    async whileUp(work: Promise<void>): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>()
      leaving.add(resolve)
      await Promise.race([work, promise])
      leaving.delete(resolve)
    },
    quietFor: pulse.quietFor,
    heard: pulse.heard,
    waiting,
    tellDropped,
    close: () => pulse.rest(),
  }
}

/** A connection that breaks meanwhile is waited for. */
async function confirmed(connection: NatsConnection): Promise<void> {
  while (!connection.isClosed()) {
    const reached = connection.flush().then(
      () => true,
      () => false,
    )
    if (await Promise.race([reached, connection.closed().then(() => true)])) return
  }
}

async function drain(clock: Clock, connection: NatsConnection, gate: Gate): Promise<void> {
  gate.close()
  if (gate.isConnected()) {
    // A drain that fails has lost its connection, and nothing is left to be drained.
    const drained = connection.drain().catch(() => undefined)
    await deadline(clock, drainTimeout, drained, goOn)
  }
  gate.tellDropped()
  await connection.close()
}

/** False: not within so many ms. A connection that is closed for good says so itself. */
async function isBack(clock: Clock, connection: NatsConnection, { isUp, waiting }: Gate, ms: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<void>()
  waiting.add(resolve)
  await deadline(clock, ms, Promise.race([promise, connection.closed()]), goOn)
  waiting.delete(resolve)
  return isUp() || connection.isClosed()
}

/** The client sends the buffer it was given in a later turn of the event loop; the sender may have filled it anew by then. */
const copyOf = (bytes: Uint8Array): Uint8Array => new Uint8Array(bytes)
