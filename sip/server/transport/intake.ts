/** Owns what becomes of bytes that came in: dropped and counted, or read and told. What is dropped gets no answer. */
import type { Clock } from '../../../model/clock.ts'
import type { Log } from '../../../model/log.ts'
import type { MessageFault, SipRequest } from '../message/message.ts'
import { parseMessage } from '../message/parse-message.ts'
import { topViaOf } from '../message/via.ts'
import type { ArrivalLimit } from './arrival-limit.ts'
import type { Flow, Received } from './transport.ts'
import { withReceived } from './via-of-way.ts'

export type Dropped = {
  /** Of an address that sends too much. */
  overLimit: number
  /** No SIP, or nothing an answer could be sent to, or an answer to what we did not ask. */
  garbage: number
}

export type IntakeHandlers = {
  /** `received` and `rport` are on its Via. */
  received(received: Received): void
  /** To be answered with the fault, at once: a stream that nobody can follow any further ends when this returns. */
  faulted(request: SipRequest, fault: MessageFault, flow: Flow): void
}

export type Intake = {
  readonly dropped: Dropped
  message(bytes: Uint8Array, flow: Flow): void
  /** A stream that cannot be followed any further: `fault` is told when the head can be answered. */
  broken(bytes: Uint8Array, fault: MessageFault, flow: Flow): void
}

export type IntakeOptions = {
  readonly admits: ArrivalLimit
  readonly handlers: IntakeHandlers
  /** Is the sent-by of a response one of ours? RFC 3261 §18.1.2. */
  isOurs(host: string, port: number | null): boolean
  readonly clock: Clock
  readonly log: Log
}

/** Ms between two lines about what is dropped. */
const logInterval = 10_000

export function createIntake({ admits, handlers, isOurs, clock, log }: IntakeOptions): Intake {
  const dropped: Dropped = { overLimit: 0, garbage: 0 }
  let toldAt = -Infinity

  function drop(kind: keyof Dropped, { remote }: Flow): void {
    dropped[kind] += 1
    if (clock.now() - toldAt < logInterval) return
    toldAt = clock.now()
    log.warn('SIP messages are dropped', { ...dropped, last: kind, personal: { address: remote.address } })
  }

  function deliver(bytes: Uint8Array, flow: Flow): void {
    const parsed = parseMessage(bytes)
    if (parsed.kind === 'garbage') return drop('garbage', flow)
    if (parsed.kind === 'fault') return handlers.faulted(withReceived(parsed.request, flow), parsed.fault, flow)
    const { message } = parsed
    if (message.kind === 'request')
      return handlers.received({ message: { ...withReceived(message, flow), size: bytes.length }, flow })
    const via = topViaOf(message)
    // On a connection of our own the answer comes back by itself, whatever stands in Via.
    if (flow.connection === 0 && !(via && isOurs(via.host, via.port))) return drop('garbage', flow)
    handlers.received({ message, flow })
  }

  /** The rim: what one message does to us ends with it. */
  function admitted(flow: Flow, take: () => void): void {
    if (!admits(flow.remote.address)) return drop('overLimit', flow)
    try {
      take()
    } catch (error) {
      log.error('a SIP message failed', { error, personal: { address: flow.remote.address } })
    }
  }

  function deliverBroken(bytes: Uint8Array, fault: MessageFault, flow: Flow): void {
    const parsed = parseMessage(bytes)
    const request = parsed.kind === 'fault' ? parsed.request : parsed.kind === 'message' ? parsed.message : null
    if (request?.kind !== 'request' || request.method === 'ACK') return drop('garbage', flow)
    handlers.faulted(withReceived(request, flow), fault, flow)
  }

  return {
    dropped,
    message(bytes, flow) {
      // Keep-alives of a NAT: nothing, a zero, line ends.
      if (bytes.length > 4) admitted(flow, () => deliver(bytes, flow))
    },
    broken: (bytes, fault, flow) => admitted(flow, () => deliverBroken(bytes, fault, flow)),
  }
}
