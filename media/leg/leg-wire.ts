/** Owns a leg's side of its transport: whether the caller is connected, and the suspicion that a caller is gone. */
import type { LegHandlers, NegotiatedAudio, RtpPacket, RtpTransport } from '../../model/rtp-transport.ts'
import type { EndedBy } from '../../model/outcome.ts'
import { isComfortNoise } from '../rtp/other-types.ts'
import { createPauseHabit } from './pause-habit.ts'
import { createSilenceWatch } from './silence-watch.ts'

type WireHandlers = Pick<
  LegHandlers,
  'negotiated' | 'connected' | 'packet' | 'alive' | 'consented' | 'presence' | 'disconnected' | 'held'
>

export type LegWire = {
  readonly handlers: WireHandlers
  /** The transport belongs to the wire from here on. */
  readonly attach: (transport: RtpTransport) => void
  readonly isConnected: () => boolean
  /** Since when, by `now`; null before. */
  readonly connectedAt: () => number | null
  /** When something of the caller came last, by `now`: the connection counts, and the end of a hold. Before it: now. */
  readonly heardAt: () => number
  /** Dropped while there is no transport. */
  readonly send: (packet: RtpPacket) => void
  /** Why the media is taken for lost, null while it is not. Asked at every tick. */
  readonly lost: () => string | null
  /** What that end is. */
  readonly end: () => { readonly cause: 'hung_up' | 'media_lost'; readonly endedBy?: EndedBy }
  readonly transport: () => RtpTransport | null
  /** Idempotent. A transport that is attached later is closed at once. */
  readonly close: (reason: string) => Promise<void>
}

export type LegWireDeps = {
  readonly now: () => number
  /** Ms. A call that waits for its leg gives up sooner; this ends the leg that nobody waits for any more. */
  readonly connectWithin: number
  readonly negotiated: (audio: NegotiatedAudio) => void
  /** At most once. */
  readonly connected: (providerStatus: string) => void
  readonly packet: (packet: RtpPacket) => void
  readonly held: LegHandlers['held']
  readonly disconnected: LegHandlers['disconnected']
}

export function createLegWire(deps: LegWireDeps): LegWire {
  const { now, connectWithin } = deps
  const createdAt = now()
  let transport: RtpTransport | null = null
  let audio: NegotiatedAudio | null = null
  let connectedAt: number | null = null
  let isHeld = false
  const silence = createSilenceWatch(now)
  const habit = createPauseHabit()
  let closeReason: string | null = null

  return {
    handlers: {
      negotiated(agreed) {
        audio = agreed
        habit.forget()
        deps.negotiated(agreed)
      },
      connected(providerStatus) {
        if (connectedAt !== null) return
        connectedAt = now()
        silence.restart()
        deps.connected(providerStatus)
      },
      packet(packet) {
        silence.packet(audio !== null && (habit.heard(packet, audio) || isComfortNoise(packet.payloadType, audio)))
        // What comes on hold is the exchange's music and not the caller.
        if (!isHeld) deps.packet(packet)
      },
      alive: silence.alive,
      consented: silence.consented,
      presence: silence.presence,
      held(holds, listens) {
        isHeld = holds
        habit.forget()
        silence.restart()
        deps.held(holds, listens)
      },
      disconnected: deps.disconnected,
    },
    attach(attached) {
      transport = attached
      if (closeReason !== null) void attached.close(closeReason)
    },
    isConnected: () => connectedAt !== null,
    connectedAt: () => connectedAt,
    heardAt: () => (connectedAt === null ? now() : silence.heardAt()),
    send: (packet) => transport?.send(packet),
    lost() {
      if (connectedAt === null) return now() - createdAt > connectWithin ? 'never connected' : null
      return isHeld ? null : silence.gone()
    },
    end() {
      const cause = connectedAt === null ? 'media_lost' : silence.cause()
      return { cause, ...(cause === 'media_lost' && silence.hasLeft() && { endedBy: 'caller' }) }
    },
    transport: () => transport,
    async close(reason) {
      closeReason ??= reason
      await transport?.close(closeReason)
    },
  }
}
