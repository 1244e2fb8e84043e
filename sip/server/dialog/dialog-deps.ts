/** Owns what the parts of a dialog share: its state, and what they need of the server. */
import type { Clock } from '../../../model/clock.ts'
import type { Log } from '../../../model/log.ts'
import type { App } from '../control/app.ts'
import type { SipRequest } from '../message/message.ts'
import type { Endpoint, Flow, Protocol } from '../transport/transport.ts'
import type { ServerTransaction } from '../transaction/transaction.ts'
import type { AcceptedInvite, Timing } from './accepted-invite.ts'
import type { DialogState } from './dialog-state.ts'
import type { RunningSession } from './session-timer.ts'
import type { Order, Outgoing } from '../send-request.ts'

export type DialogDeps = {
  readonly clock: Clock
  readonly log: Log
  readonly newId: () => string
  /** 0 ≤ x < 1. */
  readonly random: () => number
  readonly timing: Timing
  readonly send: (order: Order) => Promise<Outgoing>
  /** ACK of a 2xx, as it was sent; `peer` as of `Order`. Rejects when it cannot be sent. */
  readonly sendAck: (request: SipRequest, peer: Flow) => Promise<{ readonly sent: SipRequest; readonly flow: Flow }>
  readonly externalOf: (protocol: Protocol, remote: Endpoint) => Endpoint
  /** A request that an app is to answer. */
  readonly ask: (transaction: ServerTransaction, dialog: DialogCell) => void
  /** Answers by ourselves. */
  readonly refuse: (transaction: ServerTransaction, status: number, headers?: SipRequest['headers']) => void
  /** The dialog is gone: nobody finds it any more. */
  readonly ended: (dialog: DialogCell) => void
}

export type Endings = {
  /** With a BYE of ours, told to the app. */
  readonly end: (reason: string) => void
  /** A BYE is about to be sent; the dialog stays for a second one, but not for ever. */
  readonly ending: () => void
  /** Without a word. */
  readonly forget: () => void
}

/**
 * early → confirmed → ending (our BYE is under way) → ended. A dialog that is ending takes a second BYE only: the first may have been
 * answered with a challenge.
 */
export type Phase = 'early' | 'confirmed' | 'ending' | 'ended'

/** Written by the parts of the one dialog only. */
export type DialogCell = {
  /** What the control protocol calls it. */
  readonly id: string
  readonly app: App
  /** Who sent the INVITE: `uac` is we. */
  readonly role: 'uac' | 'uas'
  readonly session: RunningSession
  state: DialogState
  phase: Phase
  /** The last way something came or went. */
  flow: Flow
  /** Our last session description, for refreshing. */
  description: Uint8Array | null
  peerTakesUpdate: boolean
  /** Credentials of our last INVITE: its ACK repeats them. RFC 3261 §13.2.2.4. */
  credentials: SipRequest['headers']
  /** Our INVITE or UPDATE that is not answered. */
  asking: 'INVITE' | 'UPDATE' | null
  /** The peer's INVITE or UPDATE that is not answered. */
  asked: ServerTransaction | null
  /** Our 2xx that waits for its ACK. */
  accepted: {
    readonly invite: AcceptedInvite
    readonly transaction: ServerTransaction
    readonly sequence: number
  } | null
  /** Their 2xx that waits for the app's ACK, or whose ACK was sent. */
  answer: { readonly sequence: number; ack: SipRequest | null; stopWaiting: () => void } | null
  /** Our ACK is on its way: nothing overtakes it. */
  acking: Promise<unknown> | null
  /** Runs when the peer has acknowledged our 2xx. */
  readonly afterAck: (() => void)[]
}

export const isAlive = (cell: DialogCell): boolean => cell.phase === 'early' || cell.phase === 'confirmed'

export const keyOf = (callId: string, localTag: string, remoteTag: string): string =>
  `${callId}\n${localTag}\n${remoteTag}`
