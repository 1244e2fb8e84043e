/** Owns what apps send: outside dialogs from here, within them by the dialog. Every command ends in an answer to the app. */
import type { App, Reply } from './control/app.ts'
import type { SipCommand } from './control/command.ts'
import type { Core } from './core.ts'
import { completeRequest, wantsContact, type Numbers } from './complete-request.ts'
import { headersInDialog, lacksContentType } from './dialog/draft-headers.ts'
import { noDialog, nothingToAcknowledge } from './dialog/machine.ts'
import type { SipRequest, SipResponse } from './message/message.ts'
import { tagOf } from './message/address.ts'
import { readSipUri } from './message/uri.ts'
import { createPlacedInvite, type PlacedInvite } from './placed-invite.ts'
import { branchOf } from './message/via.ts'
import { seenPeerIn, sentViaIn } from './seen-at.ts'
import type { SeenPeer } from './transport/seen-peer.ts'
import type { Flow, Target } from './transport/transport.ts'
import { defaultPortOf } from './transport/via-of-way.ts'

export type RequestCommand = Omit<SipCommand, 'draft' | 'kind'> & { readonly draft: SipRequest }

export type PlacedRequests = {
  command(app: App, command: RequestCommand): Promise<Reply>
  appGone(app: App): void
  readonly size: () => number
  /** How many were canceled. */
  close(): number
}

const refused = (reason: string): Reply => ({ kind: 'refused', reason })

export function createPlacedRequests(core: Core, numbers: Numbers): PlacedRequests {
  const invites = createPlacedInvites(core)
  let others = 0

  async function command(app: App, { draft, dialogId, transactionId, proxy }: RequestCommand): Promise<Reply> {
    if (lacksContentType(draft)) return refused('missing content-type')
    const via = draft.method === 'CANCEL' && transactionId === '' ? viaOf(draft) : null
    if (draft.method === 'CANCEL' && !via) return invites.cancel(transactionId, draft)
    if (dialogId !== '') return within(dialogId, draft)
    if (draft.method === 'ACK' || draft.method === 'PRACK') return nothingToAcknowledge
    if (transactionId !== '') return refused('only CANCEL belongs to a transaction')
    if (invites.size() + others >= core.limits.placedRequests) return refused('too many requests under way')
    const request = completeRequest(draft, numbers)
    const asked = { request, nextHop: proxy, ...asOfDialog(draft, proxy) }
    return draft.method === 'INVITE' ? invites.place(app, asked) : placeOther(app, { ...asked, ...(via && { via }) })
  }

  function within(dialogId: string, draft: SipRequest): Promise<Reply> | Reply {
    const forked = draft.method === 'PRACK' ? invites.dialogFor(dialogId, draft) : null
    const dialog = forked ?? core.dialogs.named(dialogId)
    if (!dialog) return noDialog
    return draft.method === 'ACK' ? dialog.acknowledge(draft) : dialog.request(draft)
  }

  async function placeOther(app: App, asked: Asked): Promise<Reply> {
    const { request } = asked
    const transactionId = core.newId()
    const response = (answer: SipResponse, flow: Flow): void => {
      if (answer.status === 100 || !app.isOpen()) return
      app.tell(answer, { source: 'network', flow, transactionId, dialogId: '', isNew: false })
    }
    const terminated = (): void => void (others -= 1)
    others += 1
    try {
      const order = { ...asked, wantsContact: wantsContact(request), response, terminated }
      const { sent, flow } = await core.send(order)
      return { kind: 'sent', message: sent, flow, transactionId, dialogId: '' }
    } catch (error) {
      others -= 1
      throw error
    }
  }

  return {
    command,
    appGone: (app) => void invites.abandon((invite) => invite.app === app),
    size: () => invites.size() + others,
    close: () => invites.abandon(() => true),
  }
}

type Asked = {
  readonly request: SipRequest
  readonly nextHop: string | null
  readonly peer?: SeenPeer
  readonly client?: string | null
  readonly via?: Target['via']
}

/** Of the INVITE of another process that is canceled; null: it is of this one, or cannot be told from others. */
function viaOf(draft: SipRequest): Asked['via'] | null {
  const via = sentViaIn(draft)
  const branch = via && branchOf(via)
  if (!via || !branch) return null
  const protocol = via.transport === 'TLS' ? 'tls' : 'udp'
  return { sentBy: { address: via.host, port: via.port ?? defaultPortOf(protocol) }, branch }
}

/** Of a request in a dialog that another process had: it goes where one of that dialog would. */
function asOfDialog(draft: SipRequest, nextHop: string | null): Pick<Asked, 'peer' | 'client'> {
  const peer = seenPeerIn(draft)
  const uri = peer && nextHop !== null ? readSipUri(nextHop) : null
  return peer ? { peer, client: uri?.params.get('client') ?? null } : {}
}

/** INVITEs outside dialogs, by what apps call them. */
function createPlacedInvites(core: Core) {
  const byId = new Map<string, PlacedInvite>()
  /** By the id of their dialog: the last one counts, which may answer the challenge of one before. */
  const byDialog = new Map<string, PlacedInvite>()

  async function place(app: App, { request, nextHop, ...within }: Asked): Promise<Reply> {
    if (core.dialogs.size() >= core.limits.dialogs) return refused('too many calls')
    const id = core.newId()
    const over = (): void => {
      if (!byId.delete(id)) return
      release()
      isAnswered()
      if (byDialog.get(invite.dialogId) === invite) byDialog.delete(invite.dialogId)
    }
    const invite = createPlacedInvite(core, { id, app, request, nextHop, within, over })
    const release = core.dialogs.reserve(invite.dialogId)
    const isInherited = tagOf(request, 'To') !== null
    const isAnswered = isInherited ? core.dialogs.asksOver(request, () => void invite.abandon()) : () => undefined
    byId.set(id, invite)
    byDialog.set(invite.dialogId, invite)
    try {
      return await invite.send()
    } catch (error) {
      over()
      throw error
    }
  }

  return {
    place,
    cancel: (id: string, draft: SipRequest): Reply =>
      byId.get(id)?.cancel(cancelHeaders(draft)) ?? refused('there is no INVITE to cancel'),
    dialogFor: (dialogId: string, prack: SipRequest) => byDialog.get(dialogId)?.dialogFor(prack) ?? null,
    /** How many were canceled by it. */
    abandon: (isMeant: (invite: PlacedInvite) => boolean): number =>
      [...byId.values()].filter((invite) => isMeant(invite) && invite.abandon()).length,
    size: () => byId.size,
  }
}

/** Of an app's CANCEL only what it says itself, such as Reason: all else is that of the INVITE. RFC 3261 §9.1. */
const cancelHeaders = (draft: SipRequest): SipRequest['headers'] =>
  headersInDialog(draft).filter(({ name }) => name !== 'Contact' && name !== 'Content-Type')
