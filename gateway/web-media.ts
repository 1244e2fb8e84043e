/**
 * Owns the media side of one web call: the peer that answers the browser's offer and the leg behind it. A leg exists from the moment
 * an offer was good; until then nothing but the peer has to be cleared away.
 */
import type { CallId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import type { CreateWebPeer, IceCandidate, RtpTransport, RtpTransportHandlers } from '../model/rtp-transport.ts'

/** The media pipeline behind a peer, as far as the front door sees it. */
export type WebLeg = {
  readonly handlers: RtpTransportHandlers
  attach(transport: RtpTransport): void
  dtmf(digit: string): void
  hangUp(details: string): Promise<void>
  close(): Promise<void>
}

/** `onClosed` comes once, when the leg and its transport are gone. */
export type CreateWebLeg = (callId: CallId, onClosed: (reason?: string) => void) => WebLeg

export type WebMediaDeps = {
  readonly createPeer: CreateWebPeer
  readonly createLeg: CreateWebLeg
  legClosed(reason: string): void
  /** A leg that could not hang up or close as it should. */
  failed(error: unknown): void
  /** Nothing of it is left. */
  gone(): void
}

export type WebMedia = {
  /** The answer. Throws Problem CONFLICT for a second offer, VALIDATION_FAILED for a bad one; a better one may follow then. */
  answer(offer: string): Promise<string>
  addCandidate(candidate: IceCandidate | null): Promise<void>
  dtmf(digits: string): void
  /** False when there is no leg yet that could. */
  hangUp(details: string): boolean
  /** Media has been connected once. */
  wasConnected(): boolean
  /** The client will not come back: a peer without a leg goes, a leg lives as long as its call. */
  release(): void
  /** Idempotent. */
  close(): Promise<void>
}

export function createWebMedia(callId: CallId, deps: WebMediaDeps): WebMedia {
  const peer = deps.createPeer({
    negotiated(audio) {
      leg = deps.createLeg(callId, legClosed)
      leg.attach(peer)
      leg.handlers.negotiated(audio)
    },
    connected(providerStatus) {
      isConnected = true
      leg?.handlers.connected(providerStatus)
    },
    packet: (packet) => leg?.handlers.packet(packet),
    disconnected: (cause, details) => leg?.handlers.disconnected(cause, details),
  })
  let leg: WebLeg | null = null
  let isAnswering = false
  let isConnected = false

  async function answer(offer: string): Promise<string> {
    if (leg || isAnswering) throw new Problem('CONFLICT', 'An offer has been answered already.')
    isAnswering = true
    try {
      return await peer.accept(offer)
    } finally {
      isAnswering = false
    }
  }

  function legClosed(reason = 'media_closed'): void {
    deps.legClosed(reason)
    deps.gone()
  }

  async function close(): Promise<void> {
    await (leg ? leg.close() : peer.close())
    deps.gone()
  }

  return {
    answer,
    addCandidate: (candidate) => peer.addCandidate(candidate),
    dtmf(digits) {
      for (const digit of digits) leg?.dtmf(digit)
    },
    hangUp(details) {
      leg?.hangUp(details).catch((error: unknown) => deps.failed(error))
      return leg !== null
    },
    wasConnected: () => isConnected,
    release() {
      if (!leg) close().catch((error: unknown) => deps.failed(error))
    },
    close,
  }
}
