/**
 * Owns the connection to the SIP server, over drachtio-srf: what is sent, what comes, and what becomes of it all when the connection goes. The library never
 * answers what was under way on a lost connection, so everything that waits here is settled by us; and a real drachtio-server keeps the dialogs of a lost
 * connection without telling anybody, so they get a BYE when it is back (docs/design/sip.md "Differences from drachtio-server").
 */
import { isIP } from 'node:net'
import Srf from 'drachtio-srf'
import type { Clock } from '../model/clock.ts'
import { deadline, goOn } from '../model/deadline.ts'
import type { Log } from '../model/log.ts'
import { createChallengeAnswers } from './challenge-answers.ts'
import { invite, type Invitation, type InvitationHandlers } from './invitation.ts'
import { refusalOfCertificate, withCertificate } from './client-certificate.ts'
import type { ClientIdentities, ClientIdentity } from './server/transport/client-identities.ts'
import { matchCancels } from './pending-invites.ts'
import { protocolOf, publicContact, withPublicContact, type NamedOptions } from './public-contact.ts'
import { readSipUri } from './server/message/uri.ts'
import { type MayReach, refusalOfHost } from './server/transport/reachable-targets.ts'
import { destinationOf } from './server/transport/resolve-targets.ts'
import type {
  InviteOptions,
  OutgoingOptions,
  Reply,
  RequestIn,
  RequestOut,
  ResponseIn,
  RoutedMethod,
  SipDialog,
  SrfFace,
} from './stack-types.ts'
import { acceptingHeaders } from './session-headers.ts'
import { whyUnanswered } from './unanswered.ts'

export type Control = { readonly host: string; readonly port: number; readonly secret: string }

/** Our SDP, alone or with headers. */
export type AnswerContent = string | { readonly sdp: string; readonly headers: Readonly<Record<string, string>> }

/** What became of a request: its final answer, or none in time. */
export type Answered =
  | { readonly kind: 'answered'; readonly response: ResponseIn; readonly sent: RequestOut }
  | { readonly kind: 'silence'; readonly details: string }

export type SipStack = {
  readonly isConnected: () => boolean
  /** `udp/203.0.113.7:5060` and so on, as the server says. */
  readonly listening: () => readonly string[]
  /** Outside dialogs. Never rejects. */
  request(uri: string, options: OutgoingOptions, timeout?: number): Promise<Answered>
  invite(uri: string, options: InviteOptions, handlers: InvitationHandlers): Invitation
  /** Our Contact by that name, to a peer that is reached by this protocol; nothing without a name: the server writes its address. */
  contactOf(publicName: string | null | undefined, protocol: string): Readonly<Record<string, string>>
  /** Answers an INVITE with 200. `done` before anything else of the dialog is heard. */
  accept(
    invite: RequestIn,
    reply: Reply,
    content: AnswerContent,
    done: (answer: { dialog: SipDialog } | { details: string }) => void,
  ): void
  /** Ends a dialog. No event follows, answered or not. */
  hangUp(dialog: SipDialog, reason: string | undefined): void
  /** Told of when the connection is lost, until it is let go of. */
  onLost(action: () => void): () => void
  /** A dialog that is to be hung up when the connection is back. */
  orphaned(dialogId: string): void
  /** Waits a moment for BYEs that are under way; hangs nothing up itself. Idempotent. */
  close(): Promise<void>
}

export type StackDeps = {
  readonly control: Control
  readonly routes: Partial<Record<RoutedMethod, (request: RequestIn, reply: Reply) => void>>
  readonly clock: Clock
  readonly log: Log
  /** Ms until the first connection must be there. */
  readonly connectWithin: number
  /** Of hosts that are addresses: a drachtio-server looks names up by itself, and does not tell what it found. */
  readonly mayReach?: MayReach
  /** Of a server in this process, which shows certificates of trunks; absent: it has only its own. */
  readonly identities?: ClientIdentities
  /** An address has answered a request of ours. */
  readonly answered?: (address: string) => void
}

/** Ms. Above Timer F of the server (32 s, RFC 3261 §17.1.2.2): it answers first. The end of the service waits for answers to BYE so long. */
const [answerWithin, farewellWithin] = [40_000, 1_500]
const maxOrphans = 20_000

/** Rejects when the server refuses the secret or is not there in time. */
export async function connectStack(deps: StackDeps): Promise<SipStack> {
  const { clock, log } = deps
  // Why the cast: see stack-types.ts.
  const srf = new Srf() as unknown as SrfFace
  for (const [method, handler] of Object.entries(deps.routes)) srf[method as RoutedMethod](handler)
  const lostActions = new Set<() => void>()
  const orphans = new Set<string>()
  const connection = watchConnection(srf, deps, {
    connected: () => byeAll(srf, orphans),
    lost() {
      for (const action of lostActions) action()
    },
  })
  await connection.first
  const farewells = createFarewells(log)

  let closing: Promise<void> | null = null
  const end = async () => {
    await farewells.over(clock, farewellWithin)
    await connection.close()
  }
  const onLost = (action: () => void) => {
    lostActions.add(action)
    return () => void lostActions.delete(action)
  }
  const orphaned = (dialogId: string) => {
    if (connection.isUp()) byeAll(srf, new Set([dialogId]))
    else if (orphans.size < maxOrphans) orphans.add(dialogId)
  }
  const prepared = <Options extends NamedOptions & { client?: ClientIdentity }>(uri: string, options: Options) => {
    const named = withPublicContact(options, connection.listening(), protocolOf(options.proxy ?? uri))
    return withCertificate(uri, named, deps.identities)
  }
  const refusal = (uri: string, options: { proxy?: string; client?: ClientIdentity }): string | null =>
    refusalOfCertificate(uri, options, deps.identities) ?? refusalOf(deps, options.proxy ?? uri)
  return {
    isConnected: connection.isUp,
    listening: connection.listening,
    async request(uri, options, timeout = answerWithin) {
      const details = refusal(uri, options)
      return details === null
        ? ask({ ...deps, srf, onLost }, { uri, options: prepared(uri, options), timeout })
        : { kind: 'silence', details }
    },
    invite(uri, options, handlers) {
      const details = refusal(uri, options)
      if (details !== null) return notInvited(details, handlers)
      return invite(
        { srf, onLost, hangUp: farewells.hangUp, orphaned, log },
        { uri, options: prepared(uri, options), handlers },
      )
    },
    contactOf: (publicName, protocol) =>
      publicName ? { Contact: publicContact(publicName, connection.listening(), protocol) } : {},
    accept: (request, reply, content, done) => accept(srf, onLost, { request, reply, content, done }),
    hangUp: farewells.hangUp,
    onLost,
    orphaned,
    close: () => (closing ??= end()),
  }
}

/** Null: it may be sent to, as far as can be seen from here. */
function refusalOf({ mayReach }: StackDeps, uri: string): string | null {
  const read = mayReach ? readSipUri(uri) : null
  if (!read || !mayReach) return null
  const { host } = destinationOf(read)
  return isIP(host) === 0 || mayReach(host, host) ? null : refusalOfHost(host)
}

function notInvited(details: string, handlers: InvitationHandlers): Invitation {
  let isAbandoned = false
  queueMicrotask(() => isAbandoned || handlers.ended({ kind: 'unreachable', details }))
  return { cancel: () => undefined, abandon: () => void (isAbandoned = true) }
}

/** Dialogs that have been sent a BYE. */
function createFarewells(log: Log) {
  const pending = new Set<SipDialog>()
  let quiet = () => undefined as void
  return {
    hangUp(dialog: SipDialog, reason: string | undefined) {
      const headers = reason === undefined ? {} : { Reason: `SIP ;cause=200 ;text="${reason}"` }
      pending.add(dialog)
      dialog.destroy({ headers }, (error) => {
        pending.delete(dialog)
        if (error) log.debug('BYE could not be sent', { details: textOf(error) })
        if (pending.size === 0) quiet()
      })
    },
    async over(clock: Clock, ms: number) {
      if (pending.size === 0) return
      const { promise, resolve } = Promise.withResolvers<void>()
      quiet = resolve
      await deadline(clock, ms, promise, goOn)
    },
  }
}

type Watched = {
  readonly first: Promise<void>
  readonly isUp: () => boolean
  readonly listening: () => readonly string[]
  close(): Promise<void>
}

function watchConnection(
  srf: SrfFace,
  { control, clock, log, connectWithin }: StackDeps,
  told: { connected(): void; lost(): void },
): Watched {
  const { promise: first, resolve, reject } = Promise.withResolvers<void>()
  const { promise: gone, resolve: goneNow } = Promise.withResolvers<void>()
  let hostPorts: string | null = null
  let isClosed = false
  const refuse = (error: Error) => {
    disconnect(srf)
    reject(error)
  }
  const cancel = clock.after(connectWithin, () => refuse(new Error('the SIP server is not there')))
  srf.on('connect', (error, found = '') => {
    cancel()
    if (error) return refuse(new Error('the SIP server refused the secret', { cause: error }))
    matchCancels(srf.app.client.mapServer)
    hostPorts = found
    log.info('SIP server connected', { listening: found })
    told.connected()
    resolve()
  })
  srf.on('error', (error) => log.warn('SIP server connection failed', { error }))
  srf.on('close', () => {
    const wasUp = hostPorts !== null
    hostPorts = null
    if (isClosed) goneNow()
    else if (wasUp) log.error('SIP server connection was lost')
    if (wasUp) told.lost()
  })
  srf.connect({ ...control, reconnect: { retryMaxDelay: 5_000 } })
  return {
    first,
    isUp: () => hostPorts !== null,
    listening: () => hostPorts?.split(',') ?? [],
    async close() {
      if (isClosed) return gone
      isClosed = true
      if (hostPorts === null) goneNow()
      disconnect(srf)
      return gone
    },
  }
}

/** The library knows no way to stop trying while it is not connected: `disconnect` throws then, and the next try keeps its timer. */
function disconnect(srf: SrfFace): void {
  const { wp } = srf.app.client
  wp.closing = true
  clearTimeout(wp.reconnectVars?.retryTimer ?? undefined)
  try {
    srf.disconnect()
  } catch {
    // Not connected: there is at most a socket that still tries.
    wp.socket?.destroy()
  }
}

type Asking = Pick<StackDeps, 'clock' | 'answered'> & { readonly srf: SrfFace; readonly onLost: SipStack['onLost'] }

function ask(
  { srf, clock, onLost, answered }: Asking,
  { uri, options, timeout }: { uri: string; options: OutgoingOptions; timeout: number },
): Promise<Answered> {
  return new Promise((resolve) => {
    const settle = (answer: Answered) => {
      forget()
      cancel()
      resolve(answer)
    }
    const silence = (details: string) => settle({ kind: 'silence', details })
    const forget = onLost(() => silence('the connection to the SIP server was lost'))
    const cancel = clock.after(timeout, () => silence('no answer in time'))
    const { auth, ...plain } = options
    const answers = createChallengeAnswers(auth)
    const send = (asked: typeof plain) => {
      try {
        srf.app.request(uri, { ...asked, headers: { ...asked.headers } }, (error, sent) => {
          if (error || !sent) return silence(textOf(error))
          sent.on('response', (response) => {
            if (response.status < 200) return
            const why = whyUnanswered(response)
            if (why !== null) return silence(why)
            if (response.source_address !== undefined) answered?.(response.source_address)
            const proved = answers.answer({ ...asked, uri, sent, response })
            if (!proved) return settle({ kind: 'answered', response, sent })
            send({
              ...asked,
              headers: { ...asked.headers, ...proved.headers },
              ...(proved.proxy && { proxy: proved.proxy }),
            })
          })
        })
      } catch (error) {
        silence(textOf(error))
      }
    }
    send(plain)
  })
}

function accept(
  srf: SrfFace,
  onLost: SipStack['onLost'],
  {
    request,
    reply,
    content,
    done,
  }: { request: RequestIn; reply: Reply; content: AnswerContent; done: Parameters<SipStack['accept']>[3] },
): void {
  const { sdp, headers } = typeof content === 'string' ? { sdp: content, headers: {} } : content
  let isDone = false
  const settle = (answer: Parameters<typeof done>[0]) => {
    forget()
    // The library may first say that the caller hung up, and then that the dialog is there all the same.
    if (isDone && 'dialog' in answer) answer.dialog.destroy({}, () => undefined)
    if (isDone) return
    isDone = true
    done(answer)
  }
  const forget = onLost(() => settle({ details: 'the connection to the SIP server was lost' }))
  try {
    srf.createUAS(
      request,
      reply,
      { localSdp: sdp, headers: { ...acceptingHeaders(request), ...headers } },
      (error, dialog) => settle(dialog ? { dialog } : { details: textOf(error) }),
    )
  } catch (error) {
    settle({ details: textOf(error) })
  }
}

/** What the server does not know any more it answers with an error, and that is as good. */
function byeAll(srf: SrfFace, dialogIds: Set<string>): void {
  for (const stackDialogId of dialogIds) {
    const headers = { Reason: 'SIP ;cause=503 ;text="connection lost"' }
    try {
      srf.app.request({ method: 'BYE', stackDialogId, headers }, () => undefined)
    } catch {
      // The connection is gone again; the next one finds the rest.
      return
    }
    dialogIds.delete(stackDialogId)
  }
}

/** drachtio-srf gives errors as Error, and as text in some places. */
export function textOf(error: unknown): string {
  if (error instanceof Error) return error.message
  return typeof error === 'string' ? error : 'no reason was given'
}
