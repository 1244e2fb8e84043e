/** Owns the requests of peers that an app has to answer, and that each is answered by somebody. */
import type { Clock } from '../../model/clock.ts'
import type { App } from './control/app.ts'
import type { Dialog } from './dialog/dialog.ts'
import type { HeaderField } from './message/message.ts'
import { responseTo } from './message/response-to.ts'
import { phraseOf } from './reason-phrases.ts'
import type { ReceivedInvite } from './received-invite.ts'
import type { ServerTransaction } from './transaction/transaction.ts'

export type OpenRequest = {
  readonly transaction: ServerTransaction
  readonly app: App
  /** Of a request within a dialog. */
  readonly dialog: Dialog | null
  /** Of the INVITE of a new call: it waits by itself. */
  readonly invite: ReceivedInvite | null
}

export type OpenRequests = {
  /** Waits for the answer from now on. */
  add(entry: OpenRequest): void
  of(transactionId: string): OpenRequest | null
  /** Answered, one way or another. */
  forget(transactionId: string): void
  /** By us; also what is not in here. An app that has it is not asked any more. */
  refuse(transaction: ServerTransaction, status: number, headers?: readonly HeaderField[]): void
  all(): OpenRequest[]
  readonly size: () => number
}

/** Ms: after that the app's answer comes too late to be of use. A BYE is true whatever the app says. */
const answerWithin = 20_000
const byeAnswerWithin = 4_000

type Deps = { readonly clock: Clock; readonly newTag: () => string }

export function createOpenRequests({ clock, newTag }: Deps): OpenRequests {
  const open = new Map<string, OpenRequest & { readonly stopWaiting: () => void }>()

  function refuse(transaction: ServerTransaction, status: number, headers: readonly HeaderField[] = []): void {
    const entry = open.get(transaction.id)
    if (entry?.invite) return entry.invite.giveUp(status, null, headers)
    forget(transaction.id)
    const parts = { status, reason: phraseOf(status), toTag: newTag(), headers }
    transaction.respond(responseTo(transaction.request, parts))
  }

  function forget(transactionId: string): void {
    const entry = open.get(transactionId)
    if (!entry) return
    open.delete(transactionId)
    entry.stopWaiting()
    entry.dialog?.answered(transactionId)
  }

  function waitFor({ transaction, invite }: OpenRequest): () => void {
    if (invite) return () => undefined
    const isBye = transaction.request.method === 'BYE'
    return clock.after(isBye ? byeAnswerWithin : answerWithin, () => refuse(transaction, isBye ? 200 : 500))
  }

  return {
    add: (entry) => void open.set(entry.transaction.id, { ...entry, stopWaiting: waitFor(entry) }),
    of: (transactionId) => open.get(transactionId) ?? null,
    forget,
    refuse,
    all: () => [...open.values()],
    size: () => open.size,
  }
}
