/**
 * Owns one client of the signaling socket from its admission on: what it says goes to the media, what the call says goes back to it.
 * It outlives its sockets: a lost one leaves the media untouched, and messages wait until the client comes back or `resumeWindow` is
 * over. docs/contract/signaling.md "Resuming".
 *
 * States: waiting (no socket) ⇄ open (one socket) → over. A session begins waiting, because the admission comes before the socket.
 */
import { subjectsOf, type Bus } from '../model/bus.ts'
import { fromBytes, toBytes } from '../model/bus-json.ts'
import type { Cancel, Clock } from '../model/clock.ts'
import type { CallId } from '../model/ids.ts'
import type { LegEvent } from '../model/leg.ts'
import type { SocketConnection } from '../model/listener.ts'
import type { Log } from '../model/log.ts'
import { Problem, type ErrorBody } from '../model/problem.ts'
import { ServerMessage, SessionMoved, type ClientMessage } from '../model/signaling.ts'
import { resumeWindow, type Admitted } from '../model/web-call.ts'
import { createRateLimit, perSecond } from '../net/token-bucket.ts'
import { createOutbox } from './outbox.ts'
import type { SignalingTrail, SocketPlace } from './signaling-trail.ts'
import type { WebMedia } from '../media/plane/media-plane.ts'

export type WebSessionDeps = {
  /** Not null: the client comes from another process, where its sound stays; by then it had got so many messages. */
  readonly moved: { readonly by: string; readonly received: number } | null
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
  createMedia(legClosed: (reason: string) => void): WebMedia
  /** Of what it says and is told. */
  readonly trail: Pick<SignalingTrail, 'at' | 'note'>
  /** Renders what was thrown; anything but a Problem is logged there. */
  errorOf(error: unknown): ErrorBody
  /** The session is over; its leg may live on. `isElsewhere`: its client is at another process, and may come back. */
  ended(isElsewhere: boolean): void
}

export type OpenSocket = { readonly connection: SocketConnection; readonly place: SocketPlace }

export type WebSession = {
  /** A new socket: the old one is closed, then come `ready` and what was missed. `received`: see Outbox. */
  open(socket: OpenSocket, admitted: Admitted, received: number | null): void
  /** The socket is gone, with this code. Ignored when a newer one is in its place. */
  dropped(connection: SocketConnection, code: number): void
  receive(message: ClientMessage): void
  /** Shows an error; the call goes on. */
  fail(error: unknown): void
  /** Closes the socket without a word: the client comes back, to another process if this one takes nobody. Its sound goes on until then. */
  part(): void
  /** Says bye and closes the socket. Idempotent. */
  end(reason: string, code?: number): void
}

/** From the end of the leg to the end of a session whose call says nothing more: it hears the caller's last words out first. */
export const farewellTime = 7_000

/** One a second, and so many after a pause. */
const maxTextsAtOnce = 5

/** Ms for a client that comes from another process to offer its sound anew. */
const offerWithin = 5_000

/** How browsers close the sockets of a page that is closed, left or crashes. RFC 6455 §7.4.1. */
const goingAway = 1001
/** Of the registry of close codes that RFC 6455 §11.7 opened. */
const serviceRestart = 1012

export function createWebSession(callId: CallId, deps: WebSessionDeps): WebSession {
  const subjects = subjectsOf(callId)
  const subscription = deps.bus.subscribe(subjects.signal, ({ payload }) => {
    const message = ServerMessage.safeParse(fromBytes(payload)).data
    if (!message) return deps.log.warn('malformed message for a web client', { callId })
    if (message.type === 'bye') return end(message.reason)
    // Clients count what can be repeated to them by its types, and have not known this one always.
    return message.type === 'warning' ? outbox.sendNow(message) : outbox.send(message)
  })
  const outbox = createOutbox(deps.moved?.received, (message) => deps.trail.note('out', message))
  const moving = deps.bus.subscribe(subjects.moved, ({ payload }) => {
    const told = SessionMoved.safeParse(fromBytes(payload)).data
    if (told && told.by !== deps.moved?.by) leave()
  })
  const startExpiry = (): Cancel => deps.clock.after(resumeWindow, () => end('client_lost'))
  let expiry = startExpiry()
  const mayType = createRateLimit(perSecond(1, maxTextsAtOnce))
  let media: WebMedia | null = null
  let answer: string | null = null
  let farewell: Cancel = () => undefined
  let patience: Cancel = () => undefined
  let hasMoved = false
  let isOver = false

  function open({ connection, place }: OpenSocket, { sessionId, resumeToken }: Admitted, received: number | null) {
    if (isOver) return connection.close(1000, 'the call is over')
    deps.trail.at(place)
    expiry()
    takeOver()
    outbox.attach(connection)
    const newOffer = deps.moved && !media && ({ newOffer: true } as const)
    outbox.sendNow({ type: 'ready', callId, sessionId, resumeToken, ...newOffer })
    media?.presence('open')
    // Whether the lost socket still delivered the answer cannot be known; once the client uses it, it did.
    if (answer !== null && !media?.wasReached()) outbox.sendNow({ type: 'answer', sdp: answer })
    outbox.repeat(received)
  }

  /** Once, when the client is really here. */
  function takeOver(): void {
    if (!deps.moved || hasMoved) return
    hasMoved = true
    deps.bus.publish(subjects.moved, toBytes({ by: deps.moved.by }))
    patience = deps.clock.after(offerWithin, () => media ?? end('client_lost'))
  }

  const mediaOf = (): WebMedia => (media ??= deps.createMedia(legClosed))

  /** The call has its last words to say: its status, its own bye. Without them the end of the leg is the end. */
  const legClosed = (reason: string): void => void (farewell = deps.clock.after(farewellTime, () => end(reason)))

  async function takeOffer(sdp: string): Promise<void> {
    answer = await mediaOf().answer(sdp)
    if (!isOver) outbox.sendNow({ type: 'answer', sdp: answer })
  }

  function dropped(connection: SocketConnection, code: number): void {
    if (!outbox.detach(connection) || isOver) return
    expiry = startExpiry()
    media?.presence(code === goingAway ? 'left' : 'lost')
  }

  function hangUp(): void {
    if (!media?.hangUp(clientBye.details)) deps.bus.publish(subjects.legEvent, toBytes(clientBye))
    end('hung_up')
  }

  const fail = (error: unknown): void => outbox.send({ type: 'error', error: deps.errorOf(error) })

  /** Each one may cost an answer of a model. */
  function type(text: string): void {
    if (!media) return fail(new Problem('CONFLICT', 'There is no sound yet: an offer comes first.'))
    if (!mayType(deps.clock.now()))
      return fail(new Problem('RATE_LIMITED', 'Texts come faster than they can be answered.'))
    media.typed(text)
  }

  const requests: Requests = {
    offer: ({ sdp }) => void takeOffer(sdp).catch(fail),
    candidate: ({ candidate }) => void mediaOf().addCandidate(candidate).catch(fail),
    bye: hangUp,
    dtmf: ({ digits }) => media?.dtmf(digits),
    text: ({ text }) => type(text),
    ping: () => outbox.sendNow({ type: 'pong' }),
  }

  /** False: it is over already. */
  function over(): boolean {
    if (isOver) return false
    isOver = true
    expiry()
    farewell()
    patience()
    subscription.close()
    moving.close()
    return true
  }

  function end(reason: string, code = 1000): void {
    if (!over()) return
    // Its former leg is gone, and there is no other.
    if (hasMoved && !media) deps.bus.publish(subjects.legEvent, toBytes(neverOffered))
    outbox.sendNow({ type: 'bye', reason })
    outbox.close(code, reason)
    media?.presence('none')
    media?.release()
    deps.ended(false)
  }

  /** The client is at another process. */
  function leave(): void {
    if (!over()) return
    outbox.close(1000, 'replaced by a newer socket')
    deps.ended(true)
  }
  return {
    open,
    dropped,
    receive(message) {
      if (isOver) return
      deps.trail.note('in', message)
      dispatch(requests, message)
    },
    fail,
    part: () => outbox.close(serviceRestart, 'go on elsewhere'),
    end,
  }
}

const neverOffered = {
  type: 'disconnected',
  cause: 'failed',
  details: 'the client came back and did not offer its sound',
} as const satisfies LegEvent

/** Told in place of a leg that does not exist yet. */
const clientBye = {
  type: 'disconnected',
  cause: 'hung_up',
  details: 'the client said bye',
} as const satisfies LegEvent

/** What each message of the client does. */
type Requests = { readonly [Type in ClientMessage['type']]: (message: Extract<ClientMessage, { type: Type }>) => void }

const dispatch = (requests: Requests, message: ClientMessage): void => requests[message.type](message as never)
