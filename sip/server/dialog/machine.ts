/**
 * Owns the words of the dialog machine: what may happen to a dialog, and what is to be done then. The machine is a pure function, state and
 * event in, state and actions out; dialog.ts runs it. RFC 3261 §12 to §15; RFC 3262, 3311 and 4028.
 */
import type { HeaderField, SipMessage, SipRequest, SipResponse } from '../message/message.ts'
import type { TimerAction } from '../run-machine.ts'
import type { Flow } from '../transport/transport.ts'
import type { DialogState } from './dialog-state.ts'

export type Timer =
  /** Our 2xx once more, and no ACK came for it. RFC 3261 §13.3.1.4. */
  | 'repeatAcceptance'
  | 'ackOfPeer'
  /** The app did not acknowledge their 2xx. */
  | 'ackOfApp'
  /** Our reliable provisional response once more, and no PRACK came for it. RFC 3262 §3. */
  | 'repeatProvisional'
  | 'prack'
  /** RFC 4028 §10: it is our turn to refresh; once more after a failure; nobody refreshed. */
  | 'refresh'
  | 'refreshAgain'
  | 'expiry'
  /** The BYE got no answer that ends the dialog. */
  | 'ending'

/** `command`: of the app, which waits for a reply to it. Requests of ours are known by their CSeq, those of the peer by their transaction. */
export type DialogEvent =
  /** A request of the peer within the dialog; no ACK. */
  | { readonly type: 'request'; readonly transactionId: string; readonly request: SipRequest; readonly flow: Flow }
  /** ACK of a 2xx. */
  | { readonly type: 'ack'; readonly request: SipRequest; readonly flow: Flow }
  /** To a request that was sent within the dialog. */
  | { readonly type: 'response'; readonly sequence: number; readonly response: SipResponse; readonly flow: Flow }
  /** Reliable, to our INVITE that made the dialog. RFC 3262 §4. */
  | { readonly type: 'provisional'; readonly rseq: number }
  /** A 2xx to the INVITE that made the dialog, or to one whose transaction is gone; the first or again. */
  | { readonly type: 'success'; readonly response: SipResponse; readonly flow: Flow }
  | { readonly type: 'sent'; readonly flow: Flow }
  /** By a fault of ours; no answer will come. */
  | { readonly type: 'unsent'; readonly sequence: number }
  /** The app answers a request of the peer, or rings for or accepts the INVITE that made the dialog; refusing that one ends the dialog first. */
  | {
      readonly type: 'answer'
      readonly command: string
      readonly transactionId: string
      readonly request: SipRequest
      /** Complete but for RSeq and what session timers add. A provisional one is reliable if it says `Require: 100rel`. */
      readonly response: SipResponse
    }
  /** That request was answered, by the app or for it. */
  | { readonly type: 'answered'; readonly transactionId: string }
  /** The app sends anything but ACK. */
  | { readonly type: 'send'; readonly command: string; readonly draft: SipRequest }
  | { readonly type: 'acknowledge'; readonly command: string; readonly draft: SipRequest }
  /** It cannot be brought to the peer: whoever sends it knows no way any more. */
  | { readonly type: 'answerLost'; readonly transactionId: string }
  /** With a BYE of ours; `told`: the app hears of it as of a BYE that nobody sent. */
  | { readonly type: 'end'; readonly reason: string; readonly told: boolean }
  /** Without a word. */
  | { readonly type: 'forget' }
  | { readonly type: 'timer'; readonly timer: Timer }

/** Done by the owner of the machine. */
export type Deed =
  /** The app, for an answer. */
  | { readonly do: 'ask'; readonly transactionId: string }
  | {
      readonly do: 'refuse'
      readonly transactionId: string
      readonly status: number
      readonly headers: readonly HeaderField[]
    }
  | { readonly do: 'respond'; readonly transactionId: string; readonly response: SipResponse }
  /** The last response once more. */
  | { readonly do: 'respondAgain'; readonly transactionId: string }
  /** A request of ours, complete but for Contact and Via. Its `command` is replied to when it is on its way. */
  | {
      readonly do: 'send'
      readonly command: string | null
      readonly sequence: number
      readonly request: SipRequest
      readonly wantsContact: boolean
    }
  /** The ACK of a 2xx; what is sent later must not overtake it. */
  | { readonly do: 'sendAck'; readonly command: string | null; readonly request: SipRequest }
  | { readonly do: 'sendAckAgain' }
  | { readonly do: 'tell'; readonly message: SipMessage; readonly passage: Told }
  /** The peer has answered a refresh of ours with this description, which may be another one than before. */
  | { readonly do: 'followRefresh'; readonly description: string }
  | { readonly do: 'reply'; readonly command: string; readonly reply: DialogReply }
  /** The app's request is not sent at all; the app reads this like an answer of the peer. */
  | {
      readonly do: 'answerHere'
      readonly command: string
      readonly request: SipRequest
      readonly response: SipResponse
    }

export type Told = { readonly source: 'network' | 'application'; readonly transactionId: string; readonly flow: Flow }

export type DialogReply =
  { readonly kind: 'sent'; readonly message: SipResponse; readonly transactionId: string } | Refused

type Refused = { readonly kind: 'refused'; readonly reason: string }

export type Action = Deed | TimerAction<Timer>

/** State `terminated` is the last: all timers are stopped, and nobody finds the dialog any more. */
export type Step = { readonly state: DialogState; readonly actions: readonly Action[] }

/** `t1`, `t2`: ms (RFC 3261 §17.1.1.1). `chance`: 0 ≤ x < 1, another one for each event. */
export type Way = { readonly t1: number; readonly t2: number; readonly chance: number }

const nothing: readonly Action[] = []

export const to = (state: DialogState, ...actions: readonly Action[]): Step => ({ state, actions })
export const stay = (state: DialogState): Step => ({ state, actions: nothing })

/** One step after the other, as if they were one. */
export const followedBy = (first: Step, ...others: readonly ((state: DialogState) => Step)[]): Step =>
  others.reduce((before, next) => {
    const { state, actions } = next(before.state)
    return { state, actions: [...before.actions, ...actions] }
  }, first)

export const start = (timer: Timer, ms: number): Action => ({ do: 'start', timer, ms })
export const stop = (...timers: readonly Timer[]): Action[] => timers.map((timer) => ({ do: 'stop', timer }))
export const ask = (transactionId: string): Action => ({ do: 'ask', transactionId })
export const tell = (message: SipMessage, passage: Told): Action => ({ do: 'tell', message, passage })
export const refuse = (transactionId: string, status: number, headers: readonly HeaderField[] = []): Action => ({
  do: 'refuse',
  transactionId,
  status,
  headers,
})
export const respond = (transactionId: string, response: SipResponse): Action => ({
  do: 'respond',
  transactionId,
  response,
})

export const replySent = (command: string, message: SipResponse, transactionId: string): Action => ({
  do: 'reply',
  command,
  reply: { kind: 'sent', message, transactionId },
})
/** None, where no command waits for it. */
export const replyRefused = (command: string | null, reply: Refused): Action[] =>
  command === null ? [] : [{ do: 'reply', command, reply }]

const refused = (reason: string): Refused => ({ kind: 'refused', reason })

/** In the words that drachtio-srf looks for. */
export const noDialog = refused('unable to find dialog')
export const alreadyAnswered = refused('the request has been answered already')
export const nothingToAcknowledge = refused('nothing to acknowledge')
export const tooManyWait = refused('too many provisional responses wait for PRACK')
