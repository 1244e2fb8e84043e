/**
 * Owns how the core of the server speaks with its transactions. RFC 3261 §17, with the Accepted state of RFC 6026: a 2xx to INVITE is
 * retransmitted by the dialog, not here, and its ACK is no part of the transaction.
 */
import type { SipRequest, SipResponse } from '../message/message.ts'
import type { Flow, Target } from '../transport/transport.ts'

export type ServerTransaction = {
  /** Made here, unique in the process: what the control protocol calls txnId. */
  readonly id: string
  readonly request: SipRequest
  readonly flow: Flow
  /** For the answers that are made here; those of the core may bear it too, then all have the same (RFC 3261 §8.2.6.2, §9.2). */
  readonly toTag: string
  /** The last response sent; null before the first. */
  readonly lastResponse: () => SipResponse | null
  /** False, and nothing sent, after a final response (a 2xx to INVITE may be repeated: see RFC 6026). */
  respond(response: SipResponse): boolean
}

export type ClientTransaction = {
  readonly id: string
  /** As it was sent, Via and all. */
  readonly request: SipRequest
  readonly flow: Flow
  /**
   * RFC 3261 §9.1: held until a provisional response; none when a final one came first. Answers the CANCEL as it is or will be sent.
   * After 64*T1 without a final response the transaction ends with `timeout`.
   */
  cancel(headers: SipRequest['headers']): SipRequest
}

export type ClientHandlers = {
  /** Provisional and final ones; of a forked INVITE every 2xx (RFC 6026 §8.4), also repeated ones. 100 included. */
  response(response: SipResponse, flow: Flow): void
  /** Once, and no more responses follow: 64*T1 without an answer, or the network refused it. RFC 3261 §8.1.3.1. */
  failed(cause: 'timeout' | 'transport', details: string): void
  /** The transaction is gone. Always the last. */
  terminated(): void
}

export type TransactionHandlers = {
  /**
   * Of a request that belongs to no transaction: is it looked at? False: it gets no answer. A promise: that is to be asked again when it
   * resolves, with `isDecided`.
   */
  hears?(request: SipRequest, flow: Flow, isDecided: boolean): boolean | Promise<void>
  /** A new request that is no ACK and no CANCEL. INVITE has been answered 100 when it was taken. */
  request(transaction: ServerTransaction): void
  /** An ACK that belongs to no transaction: of a 2xx. */
  ack(request: SipRequest, flow: Flow): void
  /** CANCEL of an INVITE that is not answered yet; the CANCEL itself has been answered 200, the 487 is the core's. §9.2. */
  cancel(transaction: ServerTransaction, cancel: SipRequest): void
  /** A 2xx to INVITE whose client transaction is gone already. */
  strayResponse(response: SipResponse, flow: Flow): void
  /** No ACK came for a final response other than 2xx, or a response could not be sent. */
  serverFailed(transaction: ServerTransaction, details: string): void
}

export type Transactions = {
  /** From the transports. Never throws. */
  receive(message: SipRequest | SipResponse, flow: Flow): void
  /** Sends and waits. Rejects with TransportError when the first sending failed, so that another target can be tried. */
  request(request: SipRequest, target: Target, handlers: ClientHandlers): Promise<ClientTransaction>
  /** ACK of a 2xx: passes no transaction. Rejects with TransportError. */
  ack(request: SipRequest, target: Target): Promise<SipRequest>
  /** From the transports: a connection is gone. */
  closed(flow: Flow): void
  readonly size: () => number
  /** Every timer is stopped; transactions get no further word. Idempotent. */
  close(): void
}
