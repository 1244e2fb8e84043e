/**
 * Owns the embedded SIP server as a whole: it speaks SIP with the network, and drachtio's control protocol with its app on loopback, so that
 * an app cannot tell it from a drachtio-server.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { pause, type Clock } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import { createControlServer, type ControlServer } from './control/control-server.ts'
import type { Limits } from './core.ts'
import { hostPortText } from './message/header-text.ts'
import type { MessageFault, SipMessage, SipRequest } from './message/message.ts'
import { responseTo } from './message/response-to.ts'
import { readSipUri } from './message/uri.ts'
import { magicCookie } from './message/via.ts'
import { createServerCore, type ServerCore } from './server-core.ts'
import { defaultTransactionLimits, createTransactions, type TransactionLimits } from './transaction/transactions.ts'
import type { Transactions } from './transaction/transaction.ts'
import { createDnsResolver, type DnsResolver } from './transport/dns-resolver.ts'
import { createClientIdentities, type ClientIdentities } from './transport/client-identities.ts'
import type { TlsClient } from './transport/open-socket.ts'
import type { ExternalAddress } from './transport/places.ts'
import { type MayReach, reachableTargets, targetsInDialog } from './transport/reachable-targets.ts'
import { destinationOf, resolveTargets } from './transport/resolve-targets.ts'
import type { SeenPeer } from './transport/seen-peer.ts'
import type { Hears, Peers } from '../strangers.ts'
import { TransportError, type Flow, type Target, type Transports } from './transport/transport.ts'
import { createTransports, type Listen, type TransportLimits } from './transport/transports.ts'

export type SipServerOptions = {
  readonly listen: readonly Listen[]
  readonly externalAddress?: ExternalAddress
  readonly tlsClient?: TlsClient
  /** 32 random bytes as hex when it is left out. */
  readonly secret?: string
  /** Session-Expires of INVITEs, seconds (RFC 4028); null: none is asked for. */
  readonly sessionSeconds?: number | null
  readonly limits?: Partial<Limits & ControlLimits & TransactionLimits & TransportLimits>
  /** Each message that comes or is sent, also again. Never throws. */
  readonly told?: (direction: 'in' | 'out', message: SipMessage, flow: Flow) => void
  readonly clock: Clock
  readonly log: Log
  /** Everybody when it is left out. Asked for each address a request would go to, whatever its name. */
  readonly mayReach?: MayReach
  /** Who is not heard gets no answer at all; everybody is heard when it is left out. */
  readonly hears?: Hears
  /** Whose connections are taken, and are the last to be cut; everybody's when it is left out. */
  readonly peers?: Peers
  /** Those of the system when it is left out; who brings one closes it. */
  readonly resolver?: Omit<DnsResolver, 'close'>
}

type ControlLimits = Parameters<typeof createControlServer>[0]['limits']

export type SipServer = {
  /** What a drachtio app connects with. */
  readonly control: { readonly host: string; readonly port: number; readonly secret: string }
  readonly listening: Transports['listening']
  /** Certificates that its app wants shown. */
  readonly identities: ClientIdentities
  /** A dialog that goes on elsewhere, by the name that apps have for it: no more is sent in it. Nothing where it is not known. */
  forget(dialogId: string): void
  /** Tells what the peer of this dialog answers to refreshes that the server sends by itself, until it is let go of. */
  onRefreshed(dialogId: string, told: (description: string) => void): () => void
  readonly sizes: () => ReturnType<ServerCore['sizes']> & {
    readonly transactions: number
    readonly connections: number
  }
  /** Calls are hung up (nobody waits for the answers), sockets and timers closed. Idempotent. */
  close(): Promise<void>
}

/** The protocol of this version of drachtio is what is spoken. */
const version = 'v0.9.10'
const controlHost = '127.0.0.1'
/** Ms in which the last BYEs may leave. */
const farewell = 200
/** RFC 4028 §4. */
const defaultSessionSeconds = 1_800

const publicAuthorities: TlsClient = { ca: null, verify: true }

const defaultLimits: Limits & ControlLimits = {
  dialogs: 5_000,
  openRequests: 5_000,
  // A placed INVITE is remembered for half a minute after its answer: 2xx of other branches may come.
  placedRequests: 20_000,
  connections: 16,
  authenticateWithin: 5_000,
  maxUnreadBytes: 16 * 1024 * 1024,
}

/** Rejects when an address cannot be listened on; then nothing is left open. */
export async function createSipServer(options: SipServerOptions): Promise<SipServer> {
  const { clock, log } = options
  const limits = { ...defaultTransactionLimits, ...defaultLimits, ...options.limits }
  const secret = options.secret ?? randomBytes(32).toString('hex')
  const identities = createClientIdentities()
  const network = createNetwork({ ...options, tlsClient: { ...(options.tlsClient ?? publicAuthorities), identities } })
  const given = { clock, log, limits, newId: randomUUID }
  const core: ServerCore = createServerCore({
    ...given,
    transactions: () => transactions,
    externalOf: network.externalOf,
    resolve: network.resolve,
    newTag,
    newCallId: randomUUID,
    random: Math.random,
    timing: limits,
    sessionSeconds: options.sessionSeconds === undefined ? defaultSessionSeconds : options.sessionSeconds,
    appFor: (method) => control.appFor(method),
    wanted: () => control.methods(),
    hears: (request, flow, isDecided) => isHeard(options, { request, flow, isDecided }),
  })
  const transactions = createTransactions({
    clock,
    transports: network,
    handlers: core.handlers,
    limits,
    newId: randomUUID,
    newBranch: () => `${magicCookie}${randomBytes(12).toString('hex')}`,
    log,
  })
  // First of all: what comes in by the network asks it for an app.
  const control = await createControlServer({
    ...given,
    host: controlHost,
    secret,
    version,
    hostPorts: () => hostPortsOf(network.transports()),
    command: core.command,
    gone: core.appGone,
  })
  const parts: Parts = { clock, core, control, transactions, network }
  try {
    await network.open(transactions)
  } catch (error) {
    await closeAll(parts)
    throw error
  }
  let closing: Promise<void> | null = null
  return {
    control: { host: controlHost, port: control.port, secret },
    listening: network.transports().listening,
    identities,
    forget: core.forget,
    onRefreshed: core.onRefreshed,
    sizes: () => sizesOf(parts),
    close: () => (closing ??= closeAll(parts)),
  }
}

type Parts = {
  readonly clock: Clock
  readonly core: ServerCore
  readonly control: ControlServer
  readonly transactions: Transactions
  readonly network: ReturnType<typeof createNetwork>
}

const sizesOf = ({ core, transactions, network }: Parts): ReturnType<SipServer['sizes']> => ({
  ...core.sizes(),
  transactions: transactions.size(),
  connections: network.transports().connections(),
})

async function closeAll({ clock, core, control, transactions, network }: Parts): Promise<void> {
  const ended = core.hangUp()
  await control.close()
  if (ended > 0) await pause(clock, farewell)
  core.close()
  transactions.close()
  await network.close()
}

/** The transports behind a face that is there before they are: they are opened last, when everybody is ready for what comes. */
function createNetwork(options: SipServerOptions) {
  const { clock, log, told } = options
  const ownResolver = createDnsResolver()
  const resolver = options.resolver ?? ownResolver
  const abort = new AbortController()
  let opened: Transports | null = null

  function transports(): Transports {
    if (!opened) throw new TransportError('the network is not open yet')
    return opened
  }

  return {
    transports,
    async open(transactions: Transactions): Promise<void> {
      opened = await openTransports(options, transactions, transports)
    },
    // Asynchronous, so that it rejects where it would throw.
    async request(...sending: Parameters<Transports['request']>) {
      const { sent, flow } = await transports().request(...sending)
      told?.('out', sent, flow)
      return { sent, flow }
    },
    async respond(...[response, flow]: Parameters<Transports['respond']>) {
      told?.('out', response, flow)
      return transports().respond(response, flow)
    },
    again(...[sent, flow]: Parameters<Transports['again']>) {
      told?.('out', sent, flow)
      opened?.again(sent, flow)
    },
    externalOf: (...asked: Parameters<Transports['externalOf']>) => transports().externalOf(...asked),
    async resolve(uri: string, peer: SeenPeer | null): Promise<readonly Target[]> {
      const read = readSipUri(uri)
      if (!read) throw new TransportError('no SIP URI that could be resolved')
      const destination = destinationOf(read)
      const asking = { resolver, signal: abort.signal, clock, random: Math.random }
      const { mayReach = () => true } = options
      const { host } = destination
      const client = read.params.get('client') ?? null
      if (!peer) return withClient(reachableTargets(await resolveTargets(destination, asking), host, mayReach), client)
      const targets = await resolveTargets(destination, asking).catch(nowhere)
      return targetsInDialog(targets, host, { mayReach, peer })
    },
    async close(): Promise<void> {
      abort.abort()
      ownResolver.close()
      await opened?.close().catch((error: unknown) => log.error('the SIP network was not closed', { error }))
    },
  }
}

function openTransports(
  options: SipServerOptions,
  transactions: Transactions,
  opened: () => Transports,
): Promise<Transports> {
  const { clock, log, listen, externalAddress, tlsClient, limits, peers, told } = options
  const transportsOptions = {
    listen,
    externalAddress: externalAddress ?? { ipv4: null, ipv6: null },
    tlsClient: tlsClient ?? publicAuthorities,
    ...(limits ? { limits } : {}),
    ...(peers && { peers }),
    clock,
    log,
  }
  async function answerFault(request: SipRequest, fault: MessageFault, flow: Flow): Promise<void> {
    await opened().respond(responseTo(request, { ...fault, toTag: newTag() }), flow)
  }
  return createTransports(transportsOptions, {
    received({ message, flow }) {
      told?.('in', message, flow)
      transactions.receive(message, flow)
    },
    faulted: (request, fault, flow) => {
      if (isHeard(options, { request, flow, isDecided: true }) === false) return
      answerFault(request, fault, flow).catch((error: unknown) => log.debug('SIP answer not sent', { error }))
    },
    closed: (flow) => transactions.closed(flow),
  })
}

type Arrived = { readonly request: SipRequest; readonly flow: Flow; readonly isDecided: boolean }

const isHeard = ({ hears }: SipServerOptions, { request: { method }, flow, isDecided }: Arrived) =>
  hears?.({ method, address: flow.remote.address, protocol: flow.protocol }, isDecided) ?? true

/** Only the next hop of an app says one: a Request-URI or Route with such a parameter names an id that nobody was given. */
const withClient = (targets: readonly Target[], client: string | null): readonly Target[] =>
  client === null ? targets : targets.map((target) => ({ ...target, client }))

/** Many an exchange names itself in its Contact by a name that only its own network resolves. */
function nowhere(error: unknown): readonly Target[] {
  if (error instanceof TransportError) return []
  throw error
}

const newTag = (): string => randomBytes(8).toString('hex')

const hostPortsOf = ({ listening }: Transports): string =>
  listening.map(({ protocol, external }) => `${protocol}/${hostPortText(external.address, external.port)}`).join(',')
