/** Owns what the parts of the server's core share. */
import type { App } from './control/app.ts'
import type { Dialog, DialogDeps } from './dialog/dialog.ts'
import type { Dialogs } from './dialog/dialogs.ts'
import type { SipRequest, SipResponse } from './message/message.ts'
import type { ServerTransaction } from './transaction/transaction.ts'
import type { Endpoint, Flow, Protocol } from './transport/transport.ts'

export type Limits = {
  /** Dialogs, early and confirmed. */
  readonly dialogs: number
  /** Requests of peers that wait for an app. */
  readonly openRequests: number
  /** Requests of apps outside dialogs that are not over. */
  readonly placedRequests: number
}

export type Core = Omit<DialogDeps, 'ask' | 'refuse' | 'refreshed' | 'ended'> & {
  /** The address by which a peer reaches us. */
  readonly externalOf: (protocol: Protocol, remote: Endpoint) => Endpoint
  readonly dialogs: Dialogs
  readonly limits: Limits
  readonly newTag: () => string
  /** Session-Expires of our INVITEs, seconds; null: none. */
  readonly sessionSeconds: number | null
  readonly appFor: (method: string) => App | null
  /** Methods that some app wants. */
  readonly wanted: () => string[]
  /** The dialog that our answer makes; null: the INVITE has no usable Contact. */
  receivedDialog(app: App, transaction: ServerTransaction, response: SipResponse): Dialog | null
  placedDialog(app: App, id: string, placed: Placed): Dialog
  /** Of an INVITE that is placed. */
  dialogIdOf(invite: SipRequest): string
}

export type Placed = { readonly invite: SipRequest; readonly response: SipResponse; readonly flow: Flow }
