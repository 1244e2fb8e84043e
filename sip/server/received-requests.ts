/** Owns what comes from the network: who gets to see it, and the answers of apps. RFC 3261 §8.2. */
import type { App, Reply } from './control/app.ts'
import { completeResponse, exitOf, tagWanted } from './complete-response.ts'
import type { Core } from './core.ts'
import type { Dialog } from './dialog/dialog.ts'
import { alreadyAnswered } from './dialog/machine.ts'
import { allowedMethods, lacksContentType, supportedOptions } from './dialog/draft-headers.ts'
import { isTooShort, minSessionSeconds } from './dialog/session-timer.ts'
import { tagOf } from './message/address.ts'
import type { HeaderField, SipRequest, SipResponse } from './message/message.ts'
import { responseTo } from './message/response-to.ts'
import { validateRequest } from './message/validate-request.ts'
import { createOpenRequests, type OpenRequest, type OpenRequests } from './open-requests.ts'
import { createReceivedInvite } from './received-invite.ts'
import type { ServerTransaction } from './transaction/transaction.ts'

export type ReceivedRequests = Pick<OpenRequests, 'refuse' | 'size'> & {
  receive(transaction: ServerTransaction): void
  cancel(transaction: ServerTransaction, cancel: SipRequest): void
  failed(transaction: ServerTransaction): void
  /** An app's answer. */
  respond(transactionId: string, draft: SipResponse): Promise<Reply>
  /** Of a dialog: for its app. */
  ask(transaction: ServerTransaction, dialog: Dialog): void
  /** Whatever it had to answer is answered. */
  appGone(app: App): void
  close(): void
}

const retryAfter: HeaderField[] = [{ name: 'Retry-After', value: '5' }]
/** Nothing without a dialog. */
const inDialogOnly = ['BYE', 'PRACK', 'UPDATE', 'INFO']
const understood = {
  methods: [...allowedMethods, 'REGISTER', 'SUBSCRIBE', 'PUBLISH', 'MESSAGE'],
  options: supportedOptions,
  bodies: {},
}

export function createReceivedRequests(core: Core): ReceivedRequests {
  const open = createOpenRequests(core)
  const { refuse } = open

  function receive(transaction: ServerTransaction): void {
    const { request } = transaction
    const fault = validateRequest(request, understood)
    if (fault) return void transaction.respond(responseTo(request, { ...fault, toTag: core.newTag() }))
    if (open.size() >= core.limits.openRequests) return refuse(transaction, 503, retryAfter)
    if (tagOf(request, 'To') === null) return receiveNew(transaction)
    const dialog = core.dialogs.ofRequest(request)
    if (dialog) dialog.receive(transaction)
    else receiveStray(transaction)
  }

  /** Of a peer that is being asked over from another process, which is in the way of all but its goodbye; or of a dialog that nobody knows. */
  function receiveStray(transaction: ServerTransaction): void {
    const hungUp = core.dialogs.askedOver(transaction.request)
    const isBye = transaction.request.method === 'BYE'
    if (hungUp && isBye) hungUp()
    const status = isBye ? 200 : 491
    refuse(transaction, hungUp ? status : 481)
  }

  function receiveNew(transaction: ServerTransaction): void {
    const refusal = refusalOfNew(core, transaction.request)
    const app = refusal ? null : core.appFor(transaction.request.method)
    if (app) return take(transaction, app)
    const { status, headers } = refusal ?? refusalOfUnwanted(core, transaction.request)
    refuse(transaction, status, headers)
  }

  function take(transaction: ServerTransaction, app: App): void {
    const { id, request, flow } = transaction
    const isInvite = request.method === 'INVITE'
    const invite = isInvite ? createReceivedInvite(core, transaction, app, () => open.forget(id)) : null
    open.add({ transaction, app, dialog: null, invite })
    app.tell(request, { source: 'network', flow, transactionId: id, dialogId: '', isNew: true })
  }

  async function respond(transactionId: string, draft: SipResponse): Promise<Reply> {
    const entry = open.of(transactionId)
    if (!entry) return alreadyAnswered
    if (lacksContentType(draft)) return { kind: 'refused', reason: 'missing content-type' }
    if (entry.invite) return entry.invite.respond(draft)
    const reply = answer(core, entry, draft)
    if (draft.status >= 200) open.forget(transactionId)
    return reply
  }

  function cancel(transaction: ServerTransaction, message: SipRequest): void {
    const entry = open.of(transaction.id)
    if (entry?.invite) return entry.invite.giveUp(487, message)
    refuse(transaction, 487)
    const passage = { source: 'network', flow: transaction.flow, transactionId: transaction.id, isNew: false } as const
    if (entry?.app.isOpen()) entry.app.tell(message, { ...passage, dialogId: entry.dialog?.id ?? '' })
  }

  const refuseAll = (entries: readonly OpenRequest[]): void =>
    entries.forEach(({ transaction }) => refuse(transaction, statusWithoutApp(transaction), retryAfter))

  return {
    receive,
    cancel,
    respond,
    ask: (transaction, dialog) => ask(open, transaction, dialog),
    refuse,
    size: open.size,
    failed({ id }) {
      const entry = open.of(id)
      if (entry?.invite) entry.invite.lost()
      else open.forget(id)
    },
    appGone: (app) => refuseAll(open.all().filter((entry) => entry.app === app)),
    close: () => refuseAll(open.all()),
  }
}

/** Within a dialog there is one app to ask. */
function ask(open: OpenRequests, transaction: ServerTransaction, dialog: Dialog): void {
  const { id, request, flow } = transaction
  const { app } = dialog
  open.add({ transaction, app, dialog, invite: null })
  if (!app.isOpen()) return open.refuse(transaction, statusWithoutApp(transaction))
  app.tell(request, { source: 'network', flow, transactionId: id, dialogId: dialog.id, isNew: false })
}

type Refusal = { readonly status: number; readonly headers: readonly HeaderField[] }

/** The answer, whoever gives it, for what cannot be had. */
function refusalOfNew({ dialogs, limits }: Core, request: SipRequest): Refusal | null {
  if (inDialogOnly.includes(request.method)) return { status: 481, headers: [] }
  if (request.method !== 'INVITE') return null
  if (isTooShort(request)) return { status: 422, headers: [{ name: 'Min-SE', value: String(minSessionSeconds) }] }
  return dialogs.size() >= limits.dialogs ? { status: 503, headers: retryAfter } : null
}

/** No app wants it: no app is there at all, or not yet, or this is nothing for any. */
function refusalOfUnwanted({ wanted }: Core, { method }: SipRequest): Refusal {
  const isForNobody = wanted().length > 0 && method !== 'INVITE' && method !== 'OPTIONS'
  if (!isForNobody) return { status: 503, headers: retryAfter }
  return { status: 405, headers: [{ name: 'Allow', value: allowedMethods.join(', ') }] }
}

const statusWithoutApp = ({ request }: ServerTransaction): number => (request.method === 'BYE' ? 200 : 503)

async function answer(core: Core, { transaction, dialog }: OpenRequest, draft: SipResponse): Promise<Reply> {
  const { request, flow, id } = transaction
  const message = completeResponse(request, draft, tagWanted(draft) ?? core.newTag(), exitOf(core, transaction))
  if (dialog) return dialog.answer(transaction, message)
  transaction.respond(message)
  return { kind: 'sent', message, flow, transactionId: id, dialogId: '' }
}
