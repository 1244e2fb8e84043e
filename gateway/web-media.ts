/**
 * Owns the media side of one web call: the peer that answers the browser's offer and the leg behind it. A leg exists from the moment
 * the first offer was good; until then nothing but the peer has to be cleared away.
 */
import type { Cancel, Clock } from '../model/clock.ts'
import type { CallId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import type { WebMedia, WebMediaEvents } from '../media/plane/media-plane.ts'
import type {
  CreateWebPeer,
  LegHandlers,
  Presence,
  RtpTransport,
  RtpTransportHandlers,
} from '../model/rtp-transport.ts'

/** The media pipeline behind a peer, as far as the front door sees it. */
export type WebLeg = {
  readonly handlers: RtpTransportHandlers & Partial<Pick<LegHandlers, 'presence'>>
  attach(transport: RtpTransport): void
  dtmf(digit: string): void
  typed(text: string): void
  hangUp(details: string): Promise<void>
  close(): Promise<void>
}

/** `onClosed` comes once, when the leg and its transport are gone. */
export type CreateWebLeg = (callId: CallId, onClosed: (reason?: string) => void) => WebLeg

/** Ms. A browser that comes back by another process closes its former connection there and then, and that it has moved may be heard of here a moment later. */
const movesWithin = 1_500

export type WebMediaDeps = WebMediaEvents & {
  readonly clock: Pick<Clock, 'after'>
  readonly createPeer: CreateWebPeer
  readonly createLeg: CreateWebLeg
}

export function createWebMedia(callId: CallId, deps: WebMediaDeps): WebMedia {
  const peer = deps.createPeer({
    negotiated(audio) {
      leg ??= begin()
      leg.handlers.negotiated(audio)
    },
    connected: (providerStatus) => leg?.handlers.connected(providerStatus),
    packet: (packet) => leg?.handlers.packet(packet),
    alive: () => leg?.handlers.alive?.(),
    consented: () => leg?.handlers.consented?.(),
    disconnected(cause, details) {
      const tell = (): void => leg?.handlers.disconnected(cause, details)
      if (cause !== 'hung_up' || presence !== 'lost') return tell()
      doubt = deps.clock.after(movesWithin, tell)
    },
  })
  /** Who has lost its socket and closes its connection: has it hung up, or moved? */
  let doubt: Cancel = () => undefined
  let leg: WebLeg | null = null
  let isAnswering = false
  let presence: Presence = 'open'

  function begin(): WebLeg {
    const made = deps.createLeg(callId, legClosed)
    made.attach(peer)
    made.handlers.presence?.(presence)
    return made
  }

  async function answer(offer: string): Promise<string> {
    if (isAnswering) throw new Problem('CONFLICT', 'An offer has been answered already.')
    isAnswering = true
    try {
      return await peer.accept(offer)
    } finally {
      isAnswering = false
    }
  }

  function legClosed(reason = 'media_closed'): void {
    doubt()
    deps.legClosed(reason)
    deps.gone()
  }

  async function close(): Promise<void> {
    doubt()
    await (leg ? leg.close() : peer.close())
    deps.gone()
  }

  return {
    answer,
    addCandidate: (candidate) => peer.addCandidate(candidate),
    dtmf(digits) {
      for (const digit of digits) leg?.dtmf(digit)
    },
    typed: (text) => leg?.typed(text),
    hangUp(details) {
      leg?.hangUp(details).catch((error: unknown) => deps.failed(error))
      return leg !== null
    },
    wasReached: peer.wasReached,
    presence(next) {
      presence = next
      leg?.handlers.presence?.(next)
    },
    release() {
      if (!leg) close().catch((error: unknown) => deps.failed(error))
    },
    close,
  }
}
