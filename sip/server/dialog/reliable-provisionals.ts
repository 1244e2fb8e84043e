/**
 * Owns provisional responses that are repeated until PRACK comes. One is on its way at a time; what comes after it, the 2xx too, waits for
 * its PRACK. RFC 3262 §3.
 */
import type { Cancel, Clock } from '../../../model/clock.ts'
import { withHeader } from '../message/header-fields.ts'
import type { SipRequest, SipResponse } from '../message/message.ts'
import { cseqOf, rackOf } from '../message/numbered-fields.ts'

const maxWaiting = 16

export type ReliableProvisionals = {
  /** Answers the response as it is or will be sent; null: too many wait. */
  send(response: SipResponse): SipResponse | null
  /** At once, when nothing is unacknowledged any more, or when it all is stopped. */
  afterAll(action: () => void): void
  /** False: the PRACK belongs to nothing that waits for one (481). */
  acknowledge(prack: SipRequest): boolean
  readonly isClear: () => boolean
  stop(): void
}

type Deps = {
  readonly clock: Clock
  readonly t1: number
  /** RSeq of the first one: 1 … 2**31 - 1. */
  readonly firstNumber: number
  readonly invite: SipRequest
  readonly transmit: (response: SipResponse) => void
  /** 64*T1 without PRACK: the INVITE is to be refused with a 5xx. */
  readonly lost: () => void
}

export function createReliableProvisionals(deps: Deps): ReliableProvisionals {
  const waiting: (() => void)[] = []
  let next = deps.firstNumber
  /** RSeq of what is unacknowledged. */
  let pending: number | null = null
  let isStopped = false
  let cancelAgain: Cancel = () => undefined
  let cancelLost: Cancel = () => undefined

  function begin(number: number, response: SipResponse): void {
    if (isStopped) return
    pending = number
    cancelLost = deps.clock.after(64 * deps.t1, () => {
      stop()
      deps.lost()
    })
    transmit(response, deps.t1)
  }

  /** Doubled without a bound: 64*T1 end it. */
  function transmit(response: SipResponse, ms: number): void {
    deps.transmit(response)
    cancelAgain = deps.clock.after(ms, () => transmit(response, 2 * ms))
  }

  function halt(): void {
    cancelAgain()
    cancelLost()
  }

  function stop(): void {
    halt()
    pending = null
    isStopped = true
    waiting.splice(0).forEach((action) => action())
  }

  function enqueue(action: () => void): void {
    if (pending === null) action()
    else waiting.push(action)
  }

  return {
    send(response) {
      if (waiting.length >= maxWaiting) return null
      const number = next++
      const numbered = withHeader(withHeader(response, 'Require', '100rel'), 'RSeq', String(number))
      enqueue(() => begin(number, numbered))
      return numbered
    },
    afterAll: enqueue,
    acknowledge(prack) {
      const rack = rackOf(prack)
      const invited = cseqOf(deps.invite)
      if (!rack || pending !== rack.rseq || rack.cseq.number !== invited?.number || rack.cseq.method !== 'INVITE')
        return false
      halt()
      pending = null
      while (pending === null && waiting.length > 0) waiting.shift()?.()
      return true
    },
    isClear: () => pending === null,
    stop,
  }
}
