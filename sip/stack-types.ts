/**
 * Owns the shapes of drachtio-srf that this folder stands on. Its own declarations are wrong in places (`cancel`, `request`, what the
 * callbacks get), so the library is cast to these once, in stack.ts.
 */

import type { ClientIdentity } from './server/transport/client-identities.ts'

/** Several fields of one name come as one text with commas between; a missing body is '' or undefined. */
export type MessageIn = {
  readonly body?: string | undefined
  get(name: string): string | undefined
}

export type RequestIn = MessageIn & {
  readonly method: string
  readonly uri: string
  /** By name: those that begin with X- as they stood, others in lower case. Several fields of one name are one text. */
  readonly headers: Readonly<Record<string, string>>
  /** Where it came from, as the network says. */
  readonly source_address: string
  readonly source_port: number
  /** `application`: the server made it, in the place of a peer that is gone. */
  readonly source: 'network' | 'application'
  /** `udp`, `tcp` or `tls`. */
  readonly protocol: string
  /** Throws for what its grammar does not know. */
  getParsedHeader(name: string): unknown
  on(event: 'cancel', listener: (cancel?: MessageIn) => void): unknown
}

export type ResponseIn = MessageIn & {
  readonly status: number
  readonly reason: string
  /** Where it came from; of a request of ours, where it went first. None, or `0.0.0.0`: see unanswered.ts. */
  readonly source_address?: string
  readonly source_port?: number | string
  readonly protocol?: string
}

/** Where a message came from, as far as the library tells. */
export type SeenFrom = Partial<Pick<ResponseIn, 'source_address' | 'source_port' | 'protocol'>>

export type Reply = {
  readonly finalResponseSent: boolean
  /** Throws for a status it does not know. The headers are added to those of the response. */
  send(status: number, reason: string | undefined, content: { headers?: Record<string, string>; body?: string }): void
}

/** As it was sent, and where it went first. */
export type RequestOut = MessageIn &
  SeenFrom & {
    readonly uri?: string
    on(event: 'response', listener: (response: ResponseIn) => void): unknown
    /** Before the final answer; the library answers it with our offer. */
    on(event: 'update', listener: (update: RequestIn, reply: Reply) => void): unknown
    /** Throws when the connection is gone. */
    cancel(): void
  }

/** What `on` of a dialog gives for requests that want an answer. */
export type InDialogListener = (request: RequestIn, reply: Reply) => void

export type SipDialog = {
  readonly id: string
  /** The last response to our INVITE, or our own to theirs. */
  readonly res: MessageIn & SeenFrom
  /** Whose INVITE it was: `uac`, ours. */
  readonly type: 'uac' | 'uas'
  readonly sip: { readonly callId: string; readonly localTag: string; readonly remoteTag: string }
  readonly remote: { readonly sdp?: string | undefined }
  /** Asked when a request within the dialog is challenged. */
  auth?: AuthChooser | undefined
  on(
    event: 'modify' | 'update' | 'info' | 'refer' | 'notify' | 'options' | 'message' | 'publish',
    listener: InDialogListener,
  ): unknown
  /** The other side hung up, or the server did in its place; `reason` is for people. */
  on(event: 'destroy', listener: (bye: RequestIn | undefined, reason?: string) => void): unknown
  /** One turn of the event loop late; INVITE and BYE are told at once. */
  on(event: 'ack', listener: (ack: RequestIn) => void): unknown
  emit(event: 'update', request: RequestIn, reply: Reply): unknown
  /** What requests within the dialog are sent by, see request-within.ts. */
  readonly agent: {
    request(options: RequestWithin, done: (error: unknown, request?: RequestOut) => void): void
  }
  readonly socket: unknown
  destroy(options: { headers?: Record<string, string> }, done: (error: unknown) => void): unknown
}

type RequestWithin = Omit<OutgoingOptions, 'auth'> & { readonly auth?: AuthChooser; readonly _socket: unknown }

export type AuthChooser = (
  sent: MessageIn,
  challenged: MessageIn,
  use: (error: unknown, username?: string, password?: string) => void,
) => void

/** `realm`: the only one it is proved to; null: to those of the pin, and without one to whoever asks. */
export type Password = {
  readonly username: string
  readonly password: string
  readonly realm: string | null
  readonly pin?: RealmPin
  /** `required`: a challenge without `qop` is not answered, because such a proof says nothing of who asked for it when. */
  readonly qop?: 'required'
}

/** The realms that have taken the password at one place. None yet: the first that take it. */
export type RealmPin = {
  realms(): readonly string[]
  proved(realms: readonly string[]): void
  /** A challenge was not answered; why, and how that is changed, for people. */
  refused(why: string): void
}

export type OutgoingOptions = {
  method: string
  headers: Record<string, string>
  body?: string
  auth?: Password
  /** Where it is sent in place of the Request-URI's host. */
  proxy?: string
  /** Of us, in Contact. */
  publicName?: string
  /** For a peer that is called over TLS and asks for it. */
  client?: ClientIdentity
  stackDialogId?: string
}

export type InviteOptions = {
  headers: Record<string, string>
  localSdp: string
  auth?: Password
  proxy?: string
  /** Of us, in Contact. */
  publicName?: string
  /** For a peer that is called over TLS and asks for it. */
  client?: ClientIdentity
}

/** The part of `Srf` that is used. Every method throws when there is no connection. */
export type SrfFace = {
  on(event: 'connect', listener: (error: Error | null, hostPorts?: string) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'close', listener: () => void): unknown
  connect(options: {
    host: string
    port: number
    secret: string
    /** Ms between two tries at most. */
    reconnect: { retryMaxDelay: number }
  }): void
  disconnect(): void
  createUAC(
    uri: string,
    options: Omit<InviteOptions, 'auth' | 'publicName' | 'client'>,
    progress: {
      cbRequest: (error: unknown, request?: RequestOut) => void
      cbProvisional: (response: ResponseIn) => void
    },
    done: (error: unknown, dialog?: SipDialog) => void,
  ): unknown
  createUAS(
    request: RequestIn,
    reply: Reply,
    options: { localSdp: string; headers: Record<string, string> },
    done: (error: unknown, dialog?: SipDialog) => void,
  ): unknown
  readonly app: {
    request(
      options: Omit<OutgoingOptions, 'auth' | 'publicName' | 'client'>,
      done: (error: unknown, request?: RequestOut) => void,
    ): void
    request(
      uri: string,
      options: Omit<OutgoingOptions, 'auth' | 'publicName' | 'client'>,
      done: (error: unknown, request?: RequestOut) => void,
    ): void
    /** The wire under the library, for what it offers no way to say: see stack.ts, close. */
    readonly client: {
      /** By connection to a server: see pending-invites.ts. */
      readonly mapServer: ReadonlyMap<unknown, { pendingNetworkInvites: object }>
      readonly wp: {
        closing?: boolean
        readonly socket?: { destroy(): unknown }
        readonly reconnectVars?: { retryTimer?: NodeJS.Timeout | null }
      }
    }
  }
} & Readonly<Record<RoutedMethod, (handler: (request: RequestIn, reply: Reply) => void) => unknown>>

/** Requests outside dialogs that the server hands over. */
export type RoutedMethod =
  'invite' | 'options' | 'register' | 'subscribe' | 'message' | 'publish' | 'refer' | 'notify' | 'info'
