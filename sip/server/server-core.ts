/** Owns the core of the server: it joins transactions, dialogs and apps. RFC 3261 §8, §12, §13. */
import type { Clock } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import type { App, Reply } from './control/app.ts'
import type { SipCommand } from './control/command.ts'
import type { Numbers } from './complete-request.ts'
import type { Core, Limits } from './core.ts'
import { createDialog, type Dialog, type DialogDeps, type DialogSeed } from './dialog/dialog.ts'
import { nextHopOf, stateOfPlaced, stateOfReceived } from './dialog/dialog-state.ts'
import { createDialogs, type Dialogs } from './dialog/dialogs.ts'
import { createSender, type SendDeps } from './send-request.ts'
import { tagOf } from './message/address.ts'
import { headerOf } from './message/header-fields.ts'
import type { SipRequest } from './message/message.ts'
import { createPlacedRequests } from './placed-requests.ts'
import { createReceivedRequests } from './received-requests.ts'
import type { ServerTransaction, TransactionHandlers, Transactions } from './transaction/transaction.ts'
import { TransportError } from './transport/transport.ts'

export type CoreOptions = {
  readonly clock: Clock
  readonly log: Log
  readonly transactions: () => Transactions
  readonly externalOf: SendDeps['externalOf']
  readonly resolve: SendDeps['resolve']
  readonly newId: () => string
  readonly newTag: () => string
  readonly newCallId: () => string
  readonly random: () => number
  readonly timing: DialogDeps['timing']
  readonly limits: Limits
  readonly sessionSeconds: number | null
  readonly appFor: Core['appFor']
  readonly wanted: Core['wanted']
  readonly hears: NonNullable<TransactionHandlers['hears']>
}

export type ServerCore = {
  readonly handlers: TransactionHandlers
  command(app: App, command: SipCommand): Promise<Reply>
  /** Its calls are hung up, its requests answered. */
  appGone(app: App): void
  /** See SipServer. */
  forget(dialogId: string): void
  /** See SipServer. */
  onRefreshed(dialogId: string, told: (description: string) => void): () => void
  readonly sizes: () => { readonly dialogs: number; readonly open: number; readonly placed: number }
  /** All that is open is refused, canceled and hung up; nothing is waited for. Answers how much there was. */
  hangUp(): number
  /** No timer is left. */
  close(): void
}

export function createServerCore(options: CoreOptions): ServerCore {
  const { log } = options
  const dialogs = createDialogs()
  const shared = sharedOf(options)
  const refreshes = new Map<string, (description: string) => void>()
  const dialogDeps: DialogDeps = {
    ...shared,
    ask: (transaction, dialog) => received.ask(transaction, dialog),
    refuse: (transaction, status, headers) => received.refuse(transaction, status, headers),
    refreshed: (dialogId, description) => refreshes.get(dialogId)?.(description),
    ended: dialogs.remove,
  }
  const makers = createDialogMakers(dialogDeps, dialogs)
  const { limits, newTag, sessionSeconds, appFor, wanted } = options
  const core: Core = { ...shared, ...makers, dialogs, limits, newTag, sessionSeconds, appFor, wanted }
  const received = createReceivedRequests(core)
  const placed = createPlacedRequests(core, createNumbers(options))

  const handlers: TransactionHandlers = {
    hears: (request, flow, isDecided) => dialogs.ofRequest(request) !== null || options.hears(request, flow, isDecided),
    request: received.receive,
    ack: (request, flow) => dialogs.ofRequest(request)?.acknowledged(request, flow),
    cancel: received.cancel,
    strayResponse: (response, flow) => void dialogs.ofResponse(response)?.succeeded(response, flow),
    serverFailed: (transaction, details) => {
      log.debug('a SIP request was not answered to its end', { details })
      received.failed(transaction)
      loseAnswer(dialogs, transaction)
    },
  }

  return {
    handlers,
    async command(app, { draft, ...rest }) {
      if (draft.kind === 'response') return received.respond(rest.transactionId, draft)
      return placed.command(app, { ...rest, draft })
    },
    appGone(app) {
      received.appGone(app)
      placed.appGone(app)
      for (const dialog of dialogs.all()) if (dialog.app === app) dialog.end('the app is gone', false)
    },
    forget: (dialogId) => dialogs.named(dialogId)?.forget(),
    onRefreshed(dialogId, told) {
      refreshes.set(dialogId, told)
      return () => void (refreshes.get(dialogId) === told && refreshes.delete(dialogId))
    },
    sizes: () => ({ dialogs: dialogs.size(), open: received.size(), placed: placed.size() }),
    hangUp() {
      const ended = received.size() + placed.close() + dialogs.size()
      received.close()
      for (const dialog of dialogs.all()) dialog.end('the server stops', false)
      return ended
    },
    close: () => dialogs.all().forEach((dialog) => dialog.forget()),
  }
}

type Shared = Omit<DialogDeps, 'ask' | 'refuse' | 'refreshed' | 'ended'> & Pick<Core, 'externalOf'>

function sharedOf(options: CoreOptions): Shared {
  const { clock, log, newId, newTag, random, timing, externalOf, resolve, transactions } = options
  const send = createSender({ transactions, externalOf, resolve, newTag })
  return { clock, log, newId, random, timing, send, sendAck: createAckSender(options), externalOf }
}

/** The targets in their order: an ACK has no transaction that could tell of a failure later. */
function createAckSender({ resolve, transactions, externalOf }: CoreOptions): Shared['sendAck'] {
  return async (request, peer) => {
    const { publicName, client } = peer
    let failure: unknown = new TransportError('nobody answers for the address')
    for (const target of await resolve(nextHopOf(request), peer)) {
      try {
        const sent = await transactions().ack(request, { ...target, publicName, client })
        const local = externalOf(target.protocol, target.remote)
        return { sent, flow: { protocol: target.protocol, remote: target.remote, local, connection: 0 } }
      } catch (error) {
        failure = error
      }
    }
    throw failure as Error
  }
}

function createDialogMakers(
  deps: DialogDeps,
  dialogs: Dialogs,
): Pick<Core, 'receivedDialog' | 'placedDialog' | 'dialogIdOf'> {
  function add(seed: DialogSeed): Dialog {
    const dialog = createDialog(deps, seed)
    dialogs.add(dialog)
    return dialog
  }

  /** As apps know it. */
  const plainIdOf = (invite: SipRequest): string =>
    `${headerOf(invite, 'Call-ID') ?? ''};from-tag=${tagOf(invite, 'From') ?? ''}`

  /** The other end of a dialog that another process had may be here. */
  function placedIdOf(invite: SipRequest): string {
    const id = plainIdOf(invite)
    return tagOf(invite, 'To') !== null && dialogs.isTaken(id) ? `${id};inherited` : id
  }

  /** A call of the server to itself has two dialogs: that of who is called gets another name. */
  function receivedIdOf(invite: SipRequest): string {
    const id = plainIdOf(invite)
    return dialogs.isTaken(id) ? `${id};called` : id
  }

  return {
    dialogIdOf: placedIdOf,
    receivedDialog(app, { id: transactionId, request: invite, flow }, response) {
      const firstRSeq = 1 + Math.floor(deps.random() * 2 ** 30)
      const state = stateOfReceived({ transactionId, invite, response, flow, firstRSeq })
      if (!state) return null
      const dialog = add({ id: receivedIdOf(invite), app, state })
      dialogs.name(dialog)
      return dialog
    },
    placedDialog: (app, id, { invite, response, flow }) =>
      add({ id, app, state: stateOfPlaced(invite, response, flow) }),
  }
}

function createNumbers({ newTag, newCallId, random, sessionSeconds }: CoreOptions): Numbers {
  let sequence = 1_000 + Math.floor(random() * 9_000)
  return { newTag, newCallId, nextSequence: () => sequence++, sessionSeconds }
}

/** By UDP it may be lost like any packet, and goes out again; where a connection can be neither found nor made, nobody is there. */
function loseAnswer(dialogs: Dialogs, { id, flow, lastResponse }: ServerTransaction): void {
  const answer = lastResponse()
  if (answer && flow.protocol !== 'udp') dialogs.ofAnswer(answer)?.answerLost(id)
}
