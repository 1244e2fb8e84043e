/** Owns the server transactions of this process: those of the requests that came in. The transitions are in invite-server.ts and non-invite-server.ts. */
import type { Clock } from '../../../model/clock.ts'
import { tagOf } from '../message/address.ts'
import type { SipRequest, SipResponse } from '../message/message.ts'
import { responseTo } from '../message/response-to.ts'
import { createRun, type Run } from '../run-machine.ts'
import type { Flow, Transports } from '../transport/transport.ts'
import { createAnswerBudget, type AnswerBudget } from './answer-budget.ts'
import { type InviteServerEvent, startInviteServer, stepInviteServer } from './invite-server.ts'
import { classOf, type Deed, type Timing, type Way } from './machine.ts'
import { acknowledges, mergeKeyOf, serverKeyOf } from './match-keys.ts'
import { startNonInviteServer, stepNonInviteServer } from './non-invite-server.ts'
import type { ServerTransaction, TransactionHandlers } from './transaction.ts'

export type ServerDeps = {
  readonly clock: Clock
  readonly transports: Pick<Transports, 'respond'>
  readonly timing: Timing
  readonly handlers: TransactionHandlers
  /** Beyond it new requests are answered 503; those within a dialog may be a quarter more, so that calls can be ended. */
  readonly maxServers: number
  /** The same for the bytes of all requests that are kept. */
  readonly maxServerBytes: number
  newId(): string
  guarded(action: () => void): void
}

export type ServerTransactions = {
  receive(request: SipRequest, flow: Flow): void
  size(): number
  close(): void
}

type Server = {
  readonly transaction: ServerTransaction
  readonly budget: AnswerBudget | null
  readonly run: Run<ServerEvent, SipRequest | SipResponse>
  readonly forget: () => void
}

type Endings = Pick<Server, 'forget'> & { readonly refused: () => void }
type ServerEvent = Exclude<InviteServerEvent, { type: 'timer' }>

const reserve = 1.25
const retryAfterSeconds = 5

/** Transactions by their key, and those of a request that came by several ways (§8.2.2.2). */
function createTable(deps: ServerDeps) {
  const servers = new Map<string, Server>()
  const merged = new Map<string, Server>()
  /** INVITEs of no call that were refused, the oldest first: of them nothing is left but the wait for an ACK. */
  const refused = new Set<Server>()
  let bytes = 0

  return {
    servers,
    bytes: () => bytes,
    merged,
    create(request: SipRequest, flow: Flow, key: string, mergeKey: string | null): Server {
      const weight = weightOf(request)
      bytes += weight
      const server = createServer(deps, request, flow, {
        refused: () => void refused.add(server),
        forget() {
          if (servers.get(key) === server) bytes -= weight
          servers.delete(key)
          refused.delete(server)
          if (mergeKey !== null && merged.get(mergeKey) === server) merged.delete(mergeKey)
        },
      })
      servers.set(key, server)
      return server
    },
    /** Senders that never send ACK would else take all places, for 32 s each. */
    makeRoom(): boolean {
      const [oldest] = refused
      oldest?.run.stop()
      oldest?.forget()
      return oldest !== undefined
    },
    close() {
      for (const { run } of servers.values()) run.stop()
      servers.clear()
      merged.clear()
      refused.clear()
      bytes = 0
    },
  }
}

export function createServerTransactions(deps: ServerDeps): ServerTransactions {
  const { handlers } = deps
  const { servers, merged, bytes, create, makeRoom, close } = createTable(deps)

  function begin(request: SipRequest, flow: Flow, key: string): void {
    const mergeKey = mergeKeyOf(request)
    const isMerged = mergeKey !== null && merged.has(mergeKey)
    const server = create(request, flow, key, mergeKey)
    if (isMerged) return answer(server, 482, 'Loop Detected')
    if (mergeKey !== null) merged.set(mergeKey, server)
    // §17.2.1: within 200 ms, unless it is known that an answer comes sooner; nothing is.
    if (request.method === 'INVITE') answer(server, 100, 'Trying')
    handlers.request(server.transaction)
  }

  /** §9.2. */
  function cancel(request: SipRequest, flow: Flow, key: string): void {
    const inviteKey = serverKeyOf(request, 'INVITE')
    const invite = inviteKey === null ? undefined : servers.get(inviteKey)
    const server = create(request, flow, key, null)
    if (!invite) return answer(server, 481, 'Call/Transaction Does Not Exist')
    const last = invite.transaction.lastResponse()
    answer(server, 200, 'OK', (last && tagOf(last, 'To')) ?? invite.transaction.toTag)
    if (invite.run.state().name === 'proceeding') handlers.cancel(invite.transaction, request)
  }

  function acknowledge(request: SipRequest, flow: Flow): void {
    const key = serverKeyOf(request, 'INVITE')
    const invite = key === null ? undefined : servers.get(key)
    if (invite && acknowledges(request, invite.transaction.lastResponse())) invite.run.feed({ type: 'ack' }, request)
    else handlers.ack(request, flow)
  }

  let isClosed = false

  function receive(request: SipRequest, flow: Flow, isDecided = false): void {
    if (request.method === 'ACK') return acknowledge(request, flow)
    const key = serverKeyOf(request, request.method)
    if (key === null || isClosed) return
    const known = servers.get(key)
    known?.budget?.came(request)
    if (known) return known.run.feed({ type: 'request' }, request)
    const heard = isOfInvite(request) || (handlers.hears?.(request, flow, isDecided) ?? true)
    if (heard === false) return
    if (heard !== true) return void heard.then(() => deps.guarded(() => receive(request, flow, true)))
    while (isFull(request)) if (!makeRoom()) return refuse(deps, request, flow)
    if (request.method === 'CANCEL') cancel(request, flow, key)
    else begin(request, flow, key)
  }

  const isOfInvite = (request: SipRequest): boolean =>
    request.method === 'CANCEL' && servers.has(serverKeyOf(request, 'INVITE') ?? '')
  const isFull = (request: SipRequest): boolean => {
    const share = tagOf(request, 'To') === null && request.method !== 'CANCEL' ? 1 : reserve
    return servers.size >= deps.maxServers * share || bytes() + weightOf(request) > deps.maxServerBytes * share
  }

  return {
    receive: (request, flow) => receive(request, flow),
    size: () => servers.size,
    close() {
      isClosed = true
      close()
    },
  }
}

/** Bytes that a transaction keeps of its request. */
const weightOf = ({ size, headers, body }: SipRequest): number =>
  size ?? headers.reduce((sum, { name, value }) => sum + name.length + value.length, body.length)

function refuse({ transports, newId }: ServerDeps, request: SipRequest, flow: Flow): void {
  const headers = [{ name: 'Retry-After', value: String(retryAfterSeconds) }]
  const busy = { status: 503, reason: 'Service Unavailable', toTag: newId(), headers }
  // Nothing is kept of it: who hears no answer asks again.
  transports.respond(responseTo(request, busy), flow).catch(() => undefined)
}

function answer({ transaction }: Server, status: number, reason: string, toTag: string = transaction.toTag): void {
  transaction.respond(responseTo(transaction.request, { status, reason, toTag }))
}

function createServer(deps: ServerDeps, request: SipRequest, flow: Flow, { forget, refused }: Endings): Server {
  let last: SipResponse | null = null
  const failed = (details: string): void => deps.guarded(() => deps.handlers.serverFailed(transaction, details))
  const budget = createAnswerBudget(request, flow.protocol, tagOf(request, 'To') !== null)
  const send = (response: SipResponse): void => {
    if (budget?.allows(response) === false) return
    const lost = (error: unknown): void =>
      deps.guarded(() => run.feed({ type: 'transportFailed', details: String(error) }, null))
    deps.transports.respond(response, flow).catch(lost)
  }
  const run = runOf(request.method, deps, flow, {
    perform: (deed, subject) => {
      if (deed.do === 'sendAgain' && last) send(last)
      else if (deed.do === 'sendResponse' && subject?.kind === 'response') send((last = subject))
      else if (deed.do === 'pass' && subject?.kind === 'request') deps.handlers.ack(subject, flow)
      else if (deed.do === 'fail') failed(deed.details)
    },
    ended: forget,
  })
  const transaction: ServerTransaction = {
    id: deps.newId(),
    request,
    flow,
    toTag: deps.newId(),
    lastResponse: () => last,
    respond(response) {
      if (!mayRespond(run.state().name, response)) return false
      run.feed({ type: 'respond', class: classOf(response.status) }, response)
      if (request.method === 'INVITE' && response.status >= 300 && tagOf(request, 'To') === null) refused()
      return true
    },
  }
  return { transaction, budget, run, forget }
}

/** RFC 6026 §7.1: in the Accepted state a 2xx is sent again and again, and nothing else. */
function mayRespond(stateName: string, { status }: SipResponse): boolean {
  if (stateName === 'accepted') return classOf(status) === 'success'
  return stateName === 'trying' || stateName === 'proceeding'
}

type Doing = { perform(deed: Deed, subject: SipRequest | SipResponse | null): void; ended(): void }

function runOf(method: string, deps: ServerDeps, { protocol }: Flow, doing: Doing): Server['run'] {
  const { clock, guarded, timing } = deps
  const way: Way = { ...timing, reliable: protocol !== 'udp', timeoutT1: 64 }
  const shared = { clock, guarded, ...doing }
  if (method === 'INVITE')
    return createRun({
      ...shared,
      first: startInviteServer(way),
      step: (state, event: InviteServerEvent) => stepInviteServer(state, event, way),
    })
  return createRun({
    ...shared,
    first: startNonInviteServer(way),
    step: (state, event: InviteServerEvent) =>
      event.type === 'ack' ? { state, actions: [] } : stepNonInviteServer(state, event, way),
  })
}
