/**
 * Owns the words the four transaction machines share. A machine is a pure function: state and event in, state and what is to be done out.
 * Timers are the lettered ones of RFC 3261 §17 (table 4) and RFC 6026; the caller runs them.
 */
import type { TimerAction } from '../run-machine.ts'

export type Timer =
  /** INVITE client: retransmission, no answer, wait for response retransmissions. */
  | 'A'
  | 'B'
  | 'D'
  /** Client, non-INVITE: retransmission, no answer, wait for response retransmissions. */
  | 'E'
  | 'F'
  | 'K'
  /** INVITE server: response retransmission, no ACK, wait for ACK retransmissions. */
  | 'G'
  | 'H'
  | 'I'
  /** Non-INVITE server: wait for request retransmissions. */
  | 'J'
  /** RFC 6026: how long the Accepted state lasts, at the server and at the client. */
  | 'L'
  | 'M'
  /** INVITE that rings: nothing waits for ever (RFC 3261 §16.6 has it for proxies). */
  | 'C'
  /** After a CANCEL: RFC 3261 §9.1. */
  | 'canceled'
  /** A non-INVITE request that was not answered while its sender waits. */
  | 'unanswered'

/** Ms. RFC 3261 §17.1.1.1, §17.1.2.2. */
export type Timing = {
  readonly t1: number
  readonly t2: number
  readonly t4: number
  /** An INVITE without a final answer, counted from the last provisional one. */
  readonly ringing: number
}

export type Way = Timing & {
  /** TCP and TLS: no retransmissions, and nothing to wait for at the end. */
  readonly reliable: boolean
  /** Of a client, in units of T1: what Timers B and F are. */
  readonly timeoutT1: number
}

export type Action = Deed | TimerAction<Timer>

/** Done by the owner of the machine. */
export type Deed =
  /** Client: the request again. Server: the last response again. */
  | { readonly do: 'sendAgain' }
  /** Server: the response of this event, which becomes the last one. */
  | { readonly do: 'sendResponse' }
  /** What came, to the user of the transaction. */
  | { readonly do: 'pass' }
  /** ACK of the final response that came. */
  | { readonly do: 'acknowledge' }
  /** CANCEL, now that it may be sent. */
  | { readonly do: 'sendCancel' }
  | { readonly do: 'fail'; readonly cause: 'timeout' | 'transport'; readonly details: string }

/** State `terminated` is the last of every machine: all timers are stopped and the transaction is forgotten. */
export type Step<State> = { readonly state: State; readonly actions: readonly Action[] }

export type Begin<State> = { readonly state: State; readonly actions: readonly TimerAction<Timer>[] }

export const sendAgain: Action = { do: 'sendAgain' }
export const sendResponse: Action = { do: 'sendResponse' }
export const pass: Action = { do: 'pass' }
export const acknowledge: Action = { do: 'acknowledge' }
export const sendCancel: Action = { do: 'sendCancel' }
export const start = (timer: Timer, ms: number): TimerAction<Timer> => ({ do: 'start', timer, ms })
export const stop = (timer: Timer): TimerAction<Timer> => ({ do: 'stop', timer })
export const fail = (cause: 'timeout' | 'transport', details: string): Action => ({ do: 'fail', cause, details })
const nothing: readonly Action[] = []

/** The first state, and the timers it begins with. */
export const begin = <State>(state: State, ...actions: readonly TimerAction<Timer>[]): Begin<State> => ({
  state,
  actions,
})
export const to = <State>(state: State, ...actions: readonly Action[]): Step<State> => ({ state, actions })
export const stay = <State>(state: State): Step<State> => ({ state, actions: nothing })

export type Class = 'provisional' | 'success' | 'refusal'

export function classOf(status: number): Class {
  if (status < 200) return 'provisional'
  return status < 300 ? 'success' : 'refusal'
}
