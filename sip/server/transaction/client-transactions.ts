/** Owns the client transactions of this process: those of the requests we sent. The transitions are in invite-client.ts and non-invite-client.ts. */
import type { Clock } from '../../../model/clock.ts'
import { tagOf } from '../message/address.ts'
import type { SipRequest, SipResponse } from '../message/message.ts'
import { createRun, type Run } from '../run-machine.ts'
import { type Flow, type Target, TransportError, type Transports } from '../transport/transport.ts'
import { ackOf, cancelOf, withViaOf } from './follow-up.ts'
import { type InviteClientEvent, startInviteClient, stepInviteClient } from './invite-client.ts'
import { classOf, type Deed, type Timing, type Way } from './machine.ts'
import { clientKey, clientKeyOf } from './match-keys.ts'
import { startNonInviteClient, stepNonInviteClient } from './non-invite-client.ts'
import { createSilentPeers, type SilentPeers } from './silent-peers.ts'
import type { ClientHandlers, ClientTransaction } from './transaction.ts'

export type ClientDeps = {
  readonly clock: Clock
  readonly transports: Pick<Transports, 'request' | 'again'>
  readonly timing: Timing
  readonly maxClients: number
  newId(): string
  newBranch(): string
  guarded(action: () => void): void
}

export type ClientTransactions = {
  request(request: SipRequest, target: Target, handlers: ClientHandlers): Promise<ClientTransaction>
  /** False: it belongs to none. */
  receive(response: SipResponse, flow: Flow): boolean
  /** The connection is gone: what was asked over it and has no answer at all yet gets none. */
  closed(flow: Flow): void
  size(): number
  close(): void
}

type Receive = (response: SipResponse, flow: Flow) => void
type Client = { readonly receive: Receive; lost(): void; stop(): void }
type Sent = { readonly flow: Flow; readonly sent: SipRequest; readonly target: Target; readonly branch: string }
type ClientEvent = Exclude<InviteClientEvent, { type: 'timer' }>
type Told = { readonly response: SipResponse; readonly flow: Flow }

/** Responses that may overtake the news that the request was sent. */
const maxEarly = 16

type Deps = ClientDeps & { readonly silent: SilentPeers }

export function createClientTransactions(options: ClientDeps): ClientTransactions {
  const deps: Deps = { ...options, silent: createSilentPeers(options.clock.now) }
  const clients = new Map<string, Client>()
  const byConnection = createByConnection()
  let isClosed = false

  async function send(request: SipRequest, target: Target, branch: string, handlers: ClientHandlers) {
    if (isClosed) throw new TransportError('the server stops')
    if (clients.size >= deps.maxClients) throw new TransportError('too many transactions')
    const key = clientKey(branch, request.method)
    const early = createEarly()
    clients.set(key, early)
    const forget = (): void => void clients.delete(key)
    try {
      const { flow, sent } = await deps.transports.request(request, target, branch)
      if (isClosed) throw new TransportError('the server stops')
      const ended = (): void => {
        forget()
        byConnection.remove(flow, created.client)
      }
      const created = createClient(deps, { flow, sent, target, branch }, handlers, ended, send)
      clients.set(key, created.client)
      byConnection.add(flow, created.client)
      early.replayTo(created.client, deps.guarded)
      return created.transaction
    } catch (error) {
      forget()
      throw error
    }
  }

  return {
    request: (request, target, handlers) => send(request, target, target.via?.branch ?? deps.newBranch(), handlers),
    receive(response, flow) {
      const key = clientKeyOf(response)
      const client = key === null ? undefined : clients.get(key)
      client?.receive(response, flow)
      return client !== undefined
    },
    closed(flow) {
      byConnection.take(flow).forEach((client) => client.lost())
    },
    size: () => clients.size,
    close() {
      isClosed = true
      for (const client of clients.values()) client.stop()
      clients.clear()
      byConnection.clear()
    },
  }
}

/** Whom the end of a connection concerns. Packets have none. */
function createByConnection() {
  const clients = new Map<number, Set<Client>>()
  return {
    add({ connection }: Flow, client: Client): void {
      if (connection !== 0) clients.set(connection, (clients.get(connection) ?? new Set<Client>()).add(client))
    },
    remove({ connection }: Flow, client: Client): void {
      const left = clients.get(connection)
      left?.delete(client)
      if (left?.size === 0) clients.delete(connection)
    },
    take({ connection }: Flow): Client[] {
      const concerned = [...(clients.get(connection) ?? [])]
      clients.delete(connection)
      return concerned
    },
    clear: (): void => clients.clear(),
  }
}

/** Stands for a transaction while its request is being sent: who asked has not got it yet, so answers wait a turn. */
function createEarly(): Client & { replayTo(client: Client, guarded: ClientDeps['guarded']): void } {
  const waiting: Told[] = []
  return {
    receive: (response, flow) => void (waiting.length < maxEarly && waiting.push({ response, flow })),
    lost: () => undefined,
    stop: () => void waiting.splice(0),
    replayTo(client, guarded) {
      if (waiting.length === 0) return
      setImmediate(() => guarded(() => waiting.forEach(({ response, flow }) => client.receive(response, flow))))
    },
  }
}

type Send = (request: SipRequest, target: Target, branch: string, handlers: ClientHandlers) => Promise<unknown>

function createClient(deps: Deps, sent: Sent, handlers: ClientHandlers, forget: () => void, send: Send) {
  const { flow, sent: request } = sent
  /** Where the request went, whatever it was meant to go by: its ACK and its CANCEL go the same way. */
  const sameWay = { ...sent.target, protocol: flow.protocol, remote: flow.remote }
  let extra: SipRequest['headers'] = []
  const acknowledge = (response: SipResponse): void => {
    // A lost ACK is asked for again by the response that is repeated.
    deps.transports.request(ackOf(request, response), sameWay, sent.branch).catch(() => undefined)
  }
  const sendCancel = (): void => {
    // The CANCEL that does not arrive ends like one that is not heeded: the INVITE runs out of time.
    send(cancelOf(request, extra), sameWay, sent.branch, deaf).catch(() => undefined)
  }
  let isHeard = false
  const run = runOf(request, deps, flow, {
    perform: (deed, told) => {
      if (deed.do === 'pass' && !isHeard) deps.silent.answered(flow)
      isHeard ||= deed.do === 'pass'
      if (deed.do === 'fail' && deed.cause === 'timeout' && !isHeard) deps.silent.ranOutOfTime(flow)
      if (deed.do === 'sendAgain') deps.transports.again(request, flow)
      else if (deed.do === 'acknowledge' && told) acknowledge(told.response)
      else if (deed.do === 'sendCancel') sendCancel()
      else if (deed.do === 'pass' && told) handlers.response(told.response, told.flow)
      else if (deed.do === 'fail') handlers.failed(deed.cause, deed.details)
    },
    ended: () => {
      forget()
      handlers.terminated()
    },
  })
  const transaction: ClientTransaction = {
    id: deps.newId(),
    request,
    flow,
    cancel(headers) {
      extra = headers
      run.feed({ type: 'cancel' }, null)
      return withViaOf(request, cancelOf(request, headers))
    },
  }
  return { transaction, client: clientOf(run) }
}

const deaf: ClientHandlers = { response: () => undefined, failed: () => undefined, terminated: () => undefined }

type Doing = { perform(deed: Deed, told: Told | null): void; ended(): void }

/** Times T1: RFC 3261 §17.1.1.2, §17.1.2.2; and of a peer that was silent lately, where nobody is in a call with it. */
const [usualTimeout, shortTimeout] = [64, 12]

function runOf(request: SipRequest, deps: Deps, flow: Flow, doing: Doing): Run<ClientEvent, Told> {
  const { clock, guarded, timing, silent } = deps
  const { method } = request
  const timeoutT1 = tagOf(request, 'To') === null && silent.isSilent(flow) ? shortTimeout : usualTimeout
  const way: Way = { ...timing, reliable: flow.protocol !== 'udp', timeoutT1 }
  const shared = { clock, guarded, ...doing }
  if (method === 'INVITE')
    return createRun({
      ...shared,
      first: startInviteClient(way),
      step: (state, event: InviteClientEvent) => stepInviteClient(state, event, way),
    })
  return createRun({
    ...shared,
    first: startNonInviteClient(way),
    step: (state, event: InviteClientEvent) =>
      // Only an INVITE is canceled. RFC 3261 §9.1.
      event.type === 'cancel' ? { state, actions: [] } : stepNonInviteClient(state, event, way),
  })
}

function clientOf(run: Run<ClientEvent, Told>): Client {
  return {
    receive: (response, flow) => run.feed({ type: 'response', class: classOf(response.status) }, { response, flow }),
    lost() {
      const isUnheard = run.state().name === 'calling' || run.state().name === 'trying'
      if (isUnheard) run.feed({ type: 'transportFailed', details: 'the connection was lost' }, null)
    },
    stop: () => run.stop(),
  }
}
