/**
 * Owns one dialog that an INVITE made while it runs: it feeds the machine what happens (step-dialog.ts) and does what the machine wants done.
 * Nobody else sees or writes the state.
 */
import type { Clock } from '../../../model/clock.ts'
import type { Log } from '../../../model/log.ts'
import type { App, Reply } from '../control/app.ts'
import type { HeaderField, SipRequest, SipResponse } from '../message/message.ts'
import { createRun } from '../run-machine.ts'
import type { Order, Outgoing } from '../send-request.ts'
import type { ServerTransaction } from '../transaction/transaction.ts'
import type { Flow } from '../transport/transport.ts'
import { keyOf, type DialogState } from './dialog-state.ts'
import type { Deed, DialogEvent, DialogReply, Timer, Way } from './machine.ts'
import { stepDialog } from './step-dialog.ts'

export type DialogDeps = {
  readonly clock: Clock
  readonly log: Log
  readonly newId: () => string
  /** 0 ≤ x < 1. */
  readonly random: () => number
  readonly timing: Omit<Way, 'chance'>
  readonly send: (order: Order) => Promise<Outgoing>
  /** ACK of a 2xx, as it was sent. Rejects when it cannot be sent. */
  readonly sendAck: (
    request: SipRequest,
    state: DialogState,
  ) => Promise<{ readonly sent: SipRequest; readonly flow: Flow }>
  /** A request that an app is to answer. */
  readonly ask: (transaction: ServerTransaction, dialog: Dialog) => void
  /** Answers by ourselves. */
  readonly refuse: (transaction: ServerTransaction, status: number, headers: readonly HeaderField[]) => void
  /** The peer has answered a refresh of ours with this description. */
  readonly refreshed: (dialogId: string, description: string) => void
  /** The dialog is terminated: nobody finds it any more. */
  readonly ended: (dialog: Dialog) => void
}

export type DialogSeed = {
  /** What the control protocol calls it. */
  readonly id: string
  readonly app: App
  readonly state: DialogState
}

export type Dialog = {
  readonly id: string
  readonly app: App
  /** See `keyOf`. */
  readonly key: string
  readonly isEarly: () => boolean
  /** Terminated before a 2xx to our INVITE came. */
  readonly isForgotten: () => boolean
  /** A request of the peer; no ACK. */
  receive(transaction: ServerTransaction): void
  /** ACK of a 2xx. */
  acknowledged(ack: SipRequest, flow: Flow): void
  /** A 2xx to the INVITE that made it, or to one whose transaction is gone. False: it is a repetition, and has its ACK again. */
  succeeded(response: SipResponse, flow: Flow): boolean
  /** RSeq of the last reliable provisional response to our INVITE; null: none came. */
  readonly remoteRSeq: () => number | null
  /** False: a repetition, or out of order. RFC 3262 §4. */
  heardReliably(rseq: number): boolean
  /** The app's answer, complete but for RSeq and what session timers add; of the INVITE that made the dialog only 1xx and 2xx. */
  answer(transaction: ServerTransaction, response: SipResponse): Promise<Reply>
  /** A request that the app was asked has its answer, of the app or of others. */
  answered(transactionId: string): void
  /** The answer to a request of the peer cannot be sent. */
  answerLost(transactionId: string): void
  /** Any request of the app but ACK. */
  request(draft: SipRequest): Promise<Reply>
  acknowledge(draft: SipRequest): Promise<Reply>
  /** BYE by us; `told`: the app hears of it as of a BYE that nobody sent. Idempotent. */
  end(reason: string, told: boolean): void
  /** No BYE. Idempotent. */
  forget(): void
}

type Command = (id: string) => DialogEvent

export function createDialog(deps: DialogDeps, { id, app, state: first }: DialogSeed): Dialog {
  const { t1, t2 } = deps.timing
  const run = createRun<DialogState, DialogEvent, Deed, Timer, never>({
    clock: deps.clock,
    first: { state: first, actions: [] },
    step: (state, event) => stepDialog(state, event, { t1, t2, chance: deps.random() }),
    perform,
    ended: () => deps.ended(dialog),
    guarded,
  })
  const feed = (event: DialogEvent): void => run.feed(event, null)
  const transactions = createTransactionsInUse(run.state)
  /** Of commands that wait for one. */
  const replies = new Map<string, (reply: Reply) => void>()
  /** The last one, and while it is on its way: nothing overtakes it. */
  let ack: SipRequest | null = null
  let acking: Promise<unknown> | null = null

  function guarded(action: () => void): void {
    try {
      action()
    } catch (error) {
      deps.log.error('a SIP dialog failed', { error })
    }
  }

  function command(eventOf: Command): Promise<Reply> {
    const commandId = deps.newId()
    const { promise, resolve } = Promise.withResolvers<Reply>()
    replies.set(commandId, resolve)
    feed(eventOf(commandId))
    return promise
  }

  function reply(commandId: string | null, answer: Reply): void {
    if (commandId === null) return
    replies.get(commandId)?.(answer)
    replies.delete(commandId)
  }

  const replyOf = (answer: DialogReply): Reply => {
    if (answer.kind === 'refused') return answer
    return { ...answer, flow: transactions.of(answer.transactionId)?.flow ?? run.state().flow, dialogId: id }
  }

  function perform(deed: Deed): void {
    switch (deed.do) {
      case 'ask':
        return transactions.with(deed.transactionId, (transaction) => deps.ask(transaction, dialog))
      case 'refuse':
        return transactions.with(deed.transactionId, (transaction) =>
          deps.refuse(transaction, deed.status, deed.headers),
        )
      case 'respond':
        return transactions.with(deed.transactionId, (transaction) => void transaction.respond(deed.response))
      case 'respondAgain':
        return transactions.with(deed.transactionId, respondAgain)
      case 'send':
        return void send(deed)
      case 'sendAck':
        return void sendAck(deed)
      case 'sendAckAgain':
        // It may be lost like any packet: the 2xx comes once more then.
        if (ack) deps.sendAck(ack, run.state()).catch(() => undefined)
        return
      case 'tell':
        return app.tell(deed.message, { ...deed.passage, dialogId: id, isNew: false })
      case 'followRefresh':
        return deps.refreshed(id, deed.description)
      case 'reply':
        return reply(deed.command, replyOf(deed.reply))
      case 'answerHere':
        return answerHere(deed)
    }
  }

  async function send({ command: commandId, sequence, request, wantsContact }: Deed & { do: 'send' }): Promise<void> {
    try {
      // Why it fails is told to who sent it.
      if (acking) await acking.catch(() => undefined)
      const { sent, flow } = await deps.send({
        request,
        wantsContact,
        publicName: run.state().publicName,
        client: run.state().client,
        peer: run.state(),
        response: (response, way) => feed({ type: 'response', sequence, response, flow: way }),
        terminated: () => undefined,
      })
      feed({ type: 'sent', flow })
      reply(commandId, { kind: 'sent', message: sent, flow, transactionId: commandId ?? '', dialogId: id })
    } catch (error) {
      deps.log.error('SIP request failed', { method: request.method, error })
      feed({ type: 'unsent', sequence })
      reply(commandId, { kind: 'refused', reason: 'the request could not be sent' })
    }
  }

  async function sendAck({ command: commandId, request }: Deed & { do: 'sendAck' }): Promise<void> {
    ack = request
    const sending = deps.sendAck(request, run.state())
    acking = sending
    try {
      const { sent, flow } = await sending
      reply(commandId, { kind: 'sent', message: sent, flow, transactionId: deps.newId(), dialogId: id })
    } catch (error) {
      // The peer repeats its 2xx, and the ACK goes out again.
      deps.log.info('ACK could not be sent', { error })
      reply(commandId, { kind: 'refused', reason: 'the ACK could not be sent' })
    } finally {
      if (acking === sending) acking = null
    }
  }

  function answerHere({ command: transactionId, request, response }: Deed & { do: 'answerHere' }): void {
    const { flow } = run.state()
    reply(transactionId, { kind: 'sent', message: request, flow, transactionId, dialogId: id })
    // Behind the reply.
    setImmediate(() => app.tell(response, { source: 'network', flow, transactionId, dialogId: id, isNew: false }))
  }

  const dialog: Dialog = {
    id,
    app,
    key: keyOf(first.callId, first.localTag, first.remoteTag),
    isEarly: () => run.state().name === 'early',
    isForgotten: () => run.state().name === 'terminated' && run.state().answer === null,
    receive(transaction) {
      transactions.use(transaction)
      feed({ type: 'request', transactionId: transaction.id, request: transaction.request, flow: transaction.flow })
    },
    acknowledged: (request, flow) => feed({ type: 'ack', request, flow }),
    succeeded(response, flow) {
      const wasEarly = run.state().name === 'early'
      feed({ type: 'success', response, flow })
      return wasEarly && run.state().name === 'confirmed'
    },
    remoteRSeq: () => run.state().remoteRSeq,
    heardReliably(rseq) {
      const before = run.state().remoteRSeq
      feed({ type: 'provisional', rseq })
      return run.state().remoteRSeq !== before
    },
    answer(transaction, response) {
      transactions.use(transaction)
      const { id: transactionId, request } = transaction
      return command((commandId) => ({ type: 'answer', command: commandId, transactionId, request, response }))
    },
    answered: (transactionId) => feed({ type: 'answered', transactionId }),
    answerLost: (transactionId) => feed({ type: 'answerLost', transactionId }),
    request: (draft) => command((commandId) => ({ type: 'send', command: commandId, draft })),
    acknowledge: (draft) => command((commandId) => ({ type: 'acknowledge', command: commandId, draft })),
    end: (reason, told) => feed({ type: 'end', reason, told }),
    forget: () => feed({ type: 'forget' }),
  }
  return dialog
}

function respondAgain(transaction: ServerTransaction): void {
  const last = transaction.lastResponse()
  if (last) transaction.respond(last)
}

/** The transactions that the state names, and the one of this moment. */
function createTransactionsInUse(state: () => DialogState) {
  const byId = new Map<string, ServerTransaction>()
  const inUse = (): (string | undefined)[] => {
    const { asked, accepted, ringing } = state()
    return [asked?.transactionId, accepted?.transactionId, ringing?.transactionId]
  }
  return {
    use(transaction: ServerTransaction): void {
      const named = inUse()
      for (const id of byId.keys()) if (!named.includes(id)) byId.delete(id)
      byId.set(transaction.id, transaction)
    },
    of: (id: string): ServerTransaction | null => byId.get(id) ?? null,
    with(id: string, action: (transaction: ServerTransaction) => void): void {
      const transaction = byId.get(id)
      if (transaction) action(transaction)
    },
  }
}
