/** Owns how the parts of the server speak of the network: flows, targets and the port that sends. RFC 3261 §18, RFC 3581, RFC 5626 §3. */
import type { SipMessage, SipRequest, SipResponse } from '../message/message.ts'

export type Protocol = 'udp' | 'tcp' | 'tls'

export type Endpoint = { readonly address: string; readonly port: number }

/** The two ends a message travelled between. On TCP and TLS one connection is one flow, and `connection` tells two of them apart. */
export type Flow = {
  readonly protocol: Protocol
  readonly remote: Endpoint
  readonly local: Endpoint
  /** 0 on UDP. */
  readonly connection: number
  /** Of a connection that we opened: which certificate of ours it shows (client-identities.ts); none: that of the service. */
  readonly client?: string | null
}

/** Where a request goes: an address that was resolved. `serverName`: for the certificate of TLS; null: not checked against a name. */
export type Target = {
  readonly protocol: Protocol
  readonly remote: Endpoint
  readonly serverName: string | null
  /** By which name the peer knows us, in place of our address in Via. */
  readonly publicName?: string | null
  /** As of Flow. */
  readonly client?: string | null
  /** Of the CANCEL of an INVITE that another process sent: what its Via says. */
  readonly via?: { readonly sentBy: Endpoint; readonly branch: string }
}

/** Could not be sent, or was cut off: what RFC 3261 §8.1.3.1 has answered as 503. */
export class TransportError extends Error {
  override readonly name = 'TransportError'
}

/** What the server is told. The message is good by the rules of message/, its body no longer than allowed. */
export type Received = { readonly message: SipMessage; readonly flow: Flow }

export type Transports = {
  /** What is listened on, each with the address by which peers reach it (external where one is set). */
  readonly listening: readonly { readonly protocol: Protocol; readonly local: Endpoint; readonly external: Endpoint }[]
  /**
   * Puts our Via on top (`branch`, `rport`, the address of the way it goes) and sends. Answers the flow it took and the request as sent.
   * Opens a connection where there is none; a request over 1300 bytes that was to go by UDP goes by TCP when that can be had (§18.1.1).
   * Rejects with TransportError.
   */
  request(
    request: SipRequest,
    target: Target,
    branch: string,
  ): Promise<{ readonly flow: Flow; readonly sent: SipRequest }>
  /** The same bytes again; UDP only. Errors come as a lost packet does: not at all. */
  again(request: SipRequest, flow: Flow): void
  /** By the flow the request came on, else by its Via (§18.2.2). Rejects with TransportError. */
  respond(response: SipResponse, flow: Flow): Promise<void>
  /** The address a peer at the end of this flow reaches us by, for Contact and Via. */
  externalOf(protocol: Protocol, remote: Endpoint): Endpoint
  connections(): number
  /** Since the start: messages of addresses that sent too many, bytes that were no SIP, connections beyond the limits. */
  dropped(): { readonly overLimit: number; readonly garbage: number; readonly connections: number }
  /** Idempotent; connections are cut. */
  close(): Promise<void>
}
