/** Owns the transaction layer as a whole: both kinds of transactions, and what belongs to none. RFC 3261 §17. */
import type { Clock } from '../../../model/clock.ts'
import type { Log } from '../../../model/log.ts'
import type { SipRequest, SipResponse } from '../message/message.ts'
import { cseqOf } from '../message/numbered-fields.ts'
import type { Flow, Transports } from '../transport/transport.ts'
import { createClientTransactions } from './client-transactions.ts'
import { classOf, type Timing } from './machine.ts'
import { createServerTransactions } from './server-transactions.ts'
import type { TransactionHandlers, Transactions } from './transaction.ts'

export type TransactionLimits = Timing & {
  readonly maxClients: number
  readonly maxServers: number
  /** Of the requests that came in and are kept. */
  readonly maxServerBytes: number
}

/** RFC 3261 §17.1.1.1 and §17.1.2.2; ringing: longer than any phone rings. */
export const defaultTransactionLimits: TransactionLimits = {
  t1: 500,
  t2: 4_000,
  t4: 5_000,
  ringing: 600_000,
  maxClients: 20_000,
  maxServers: 20_000,
  maxServerBytes: 64 << 20,
}

export type TransactionsOptions = {
  readonly clock: Clock
  readonly transports: Pick<Transports, 'request' | 'again' | 'respond'>
  readonly handlers: TransactionHandlers
  readonly limits?: Partial<TransactionLimits>
  /** Unique in the process; also the To tag of what is answered here, so it must be a token (RFC 3261 §25.1) nobody can guess. */
  newId(): string
  /** Begins with `z9hG4bK`; unique in the world. */
  newBranch(): string
  readonly log: Log
}

export function createTransactions(options: TransactionsOptions): Transactions {
  const { clock, transports, handlers, newId, newBranch, log } = options
  const timing = { ...defaultTransactionLimits, ...options.limits }
  const guarded = (action: () => void): void => {
    try {
      action()
    } catch (error) {
      log.error('a SIP transaction failed', { error })
    }
  }
  const { maxClients, maxServers, maxServerBytes } = timing
  const clients = createClientTransactions({ clock, transports, timing, maxClients, newId, newBranch, guarded })
  const servers = createServerTransactions({
    clock,
    transports,
    timing,
    maxServers,
    maxServerBytes,
    handlers,
    newId,
    guarded,
  })

  function receive(message: SipRequest | SipResponse, flow: Flow): void {
    if (message.kind === 'request') return servers.receive(message, flow)
    if (!clients.receive(message, flow) && isAcceptance(message)) handlers.strayResponse(message, flow)
  }

  return {
    receive: (message, flow) => guarded(() => receive(message, flow)),
    request: clients.request,
    ack: async (request, target) => (await transports.request(request, target, newBranch())).sent,
    closed: (flow) => guarded(() => clients.closed(flow)),
    size: () => clients.size() + servers.size(),
    close() {
      clients.close()
      servers.close()
    },
  }
}

const isAcceptance = (response: SipResponse): boolean =>
  classOf(response.status) === 'success' && cseqOf(response)?.method === 'INVITE'
